"""Answer a request's body with a body, without HTTP."""

import asyncio
import dataclasses
from collections.abc import Iterator

import numpy as np

from keras_transformer.saved_models.signature import DEFAULT_SIGNATURE
from keras_transformer.server import costs, from_json, open_inference, to_json
from keras_transformer.server.batcher import Batcher
from keras_transformer.server.options import RequestError, ServeOptions
from keras_transformer.server.rows import in_parts, refuse_long, rows
from keras_transformer.server.served_versions import Versions, not_served
from pipelines.glossary import Glossary

# Of a request's glossary, which is read for this request alone, and the characters of each.
MOST_TERMS = 5_000
LONGEST_TERM = 500


class Service:
    """One model that answers TF Serving's three requests, predict, status and metadata, and those
    of the Open Inference Protocol: infer, described and ready.
    """

    def __init__(self, name: str, versions: Versions, batcher: Batcher, options: ServeOptions):
        self.name = name
        self.versions = versions
        self.batcher = batcher
        self.options = options

    async def predict(
        self, name: str, number: int | None, body: bytes, seen: dict
    ) -> Iterator[bytes]:
        """The answer to a request's body, in pieces, by a version of a model, None: the newest.
        `seen` receives what may be logged: the signature, the number of rows, the version.
        """
        document = await asyncio.to_thread(from_json.parse, body)
        parameters = open_inference.parameters_of(document, "the request")
        said, options = open_inference.parted(parameters)
        # TF Serving's JSON may have these beside its other members, too.
        said |= {one: document[one] for one in ("signature_name", "glossary") if one in document}
        signature_name = said.get("signature_name") or DEFAULT_SIGNATURE

        def read(signature):
            arrays = from_json.arrays(document, signature, self.options)
            return open_inference.with_options(arrays, options, signature_name, signature)

        with self._use(name, number) as version:
            outputs = await self._outputs(version, signature_name, read, said, seen)
        return to_json.response(outputs, "instances" in document)

    async def infer(
        self, name: str, number: int | None, body: bytes, length: str | None, seen: dict
    ) -> tuple[Iterator[bytes], dict[str, str]]:
        """The answer to a request of the Open Inference Protocol, in pieces, and its headers.
        Arguments as of `predict`; `length` is the header that says how long the body's JSON is.
        """
        request = await asyncio.to_thread(open_inference.read, body, length)
        with self._use(name, number) as version:
            outputs = await self._outputs(
                version, request.signature_name, request.arrays, request.said, seen
            )
            return request.answer(outputs, name, version.number)

    async def _outputs(self, version, signature_name, read, said, seen):
        """What a version's signature gives for the arrays that `read` gives for a `Signature`,
        within the time that `said` has.
        """
        limit = open_inference.seconds(said)
        try:
            async with asyncio.timeout(limit):
                return await self._computed(version, signature_name, read, said, seen)
        except TimeoutError as error:
            raise RequestError(
                f"It took longer than the request's timeout, {limit:g} s.", 504
            ) from error

    async def _computed(self, version, signature_name, read, said, seen):
        seen["version"] = version.number
        signature = version.signature(signature_name)
        seen["signature"] = signature_name
        glossary = said.get("glossary", {})
        task = await asyncio.to_thread(self._task, version, signature_name, read, glossary)
        seen["rows"] = task.count
        key = (version.number, signature_name, task.options_key)
        most_rows = max(1, self.options.most_memory // max(task.row_memory, 1))
        parts = []
        # One after the other: large batches are worked on so, and each takes one place.
        for part in in_parts(task, min(most_rows, self.options.max_batch_size)):
            future = self.batcher.submit(
                part,
                lambda inputs, cancellation: version.model.run(
                    signature_name, inputs, cancellation
                ),
                key if signature.is_mergeable else None,
            )
            try:
                parts.append(await asyncio.wrap_future(future))
            finally:
                future.cancel()
        return {
            name: np.concatenate([part[name] for part in parts]) if len(parts) > 1 else array
            for name, array in parts[0].items()
        }

    def status(self, name: str, number: int | None = None) -> dict:
        """The states of all versions, or of one, as TF Serving's GetModelStatusResponse."""
        states = {**self.versions.states} if name == self.name else {}
        if number is not None and number not in states:
            raise RequestError(f"Could not find version {number} of model {name}", 404)
        if not states:
            raise RequestError(f"Could not find any versions of model {name}", 404)
        found = []
        for one in sorted(states, reverse=True) if number is None else [number]:
            error = states[one].error
            status = {"error_code": "UNKNOWN" if error else "OK", "error_message": error}
            found.append({"version": str(one), "state": states[one].state, "status": status})
        return {"model_version_status": found}

    def metadata(self, name: str, number: int | None = None) -> dict:
        """The signatures of a version, as TF Serving's GetModelMetadataResponse."""
        with self._use(name, number) as version:
            return {
                "model_spec": {"name": name, "signature_name": "", "version": str(version.number)},
                "metadata": {"signature_def": {"signature_def": version.model.described}},
            }

    def described(
        self, name: str, number: int | None = None, signature_name: str | None = None
    ) -> dict:
        """A version as the Open Inference Protocol describes it, by one of its signatures."""
        with self._use(name, number) as version:
            signature = version.signature(signature_name or DEFAULT_SIGNATURE)
            return {
                "name": name,
                "versions": [str(one) for one in self.versions.available()],
                "platform": version.model.platform,
                "inputs": open_inference.tensors(signature.inputs, signature.defaults),
                "outputs": open_inference.tensors(signature.outputs),
                "parameters": {"signatures": ", ".join(version.model.signatures)},
            }

    def is_ready(self, name: str, number: int | None = None) -> bool:
        """Whether a model, or one version of it, is served."""
        try:
            with self._use(name, number):
                return True
        except RequestError:
            return False

    def _use(self, name, number):
        if name != self.name:
            raise not_served(name, number)
        return self.versions.use(name, number)

    def _task(self, version, name, read, glossary):
        """A request to a signature of some name as `Rows`."""
        signature = version.model.signatures[name]
        task = self._with_terms(glossary, rows(read(signature), signature, self.options), version)
        return costs.within_limits(name, signature, task, version.sizes, self.options)

    def _with_terms(self, asked, task, version):
        """A request with the terms of a glossary marked in its texts."""
        if not isinstance(asked, dict) or not all(isinstance(one, str) for one in asked.values()):
            raise RequestError('"glossary" must be an object of terms and their translations.')
        longest = max(map(len, (*asked, *asked.values())), default=0)
        if len(asked) > MOST_TERMS or longest > LONGEST_TERM:
            raise RequestError(
                f'"glossary" must have at most {MOST_TERMS:,} terms, of {LONGEST_TERM} characters. '
                f"Received: {len(asked):,}, the longest of {longest:,}. Give the server a file of "
                "more by --glossary."
            )
        if "text" not in task.inputs or not (asked or version.terms):
            return task
        texts = task.inputs["text"]
        how = ("utf-8", "surrogateescape")
        try:
            own = version.glossary
            glossary = Glossary(asked, own.protected, own) if asked else own
            marked = [glossary.applied(one.decode(*how)).encode(*how) for one in texts.reshape(-1)]
        # Terms may have half a surrogate pair.
        except ValueError as error:
            raise RequestError(str(error)) from error
        inputs = {**task.inputs, "text": np.array(marked, object).reshape(texts.shape)}
        refuse_long(inputs, self.options)
        return dataclasses.replace(task, inputs=inputs)
