"""Requests to answers, without HTTP."""

import asyncio
import contextlib
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

# Limits of a request's glossary, which is read for each request: its terms, and their characters.
MOST_TERMS = 5_000
LONGEST_TERM = 500


class Service:
    """One model that answers TF Serving's predict, status and metadata requests, and those of the
    Open Inference Protocol for inference, metadata (`description`) and readiness.
    """

    def __init__(self, name: str, versions: Versions, batcher: Batcher, options: ServeOptions):
        self.name = name
        self.versions = versions
        self.batcher = batcher
        self.options = options

    async def predict(
        self, name: str, number: int | None, body: bytes, details: dict
    ) -> Iterator[bytes]:
        """Answer a request's body, in pieces, by version `number` of a model, None: the newest.
        `details` receives what may be logged: the signature, the number of rows, the version.
        """
        document = await asyncio.to_thread(from_json.parse, body)
        parameters, options = open_inference.parameters_of(document)
        # TF Serving's JSON may have these as members of the request, too.
        members = ("signature_name", "glossary")
        parameters |= {member: document[member] for member in members if member in document}
        signature_name = parameters.get("signature_name") or DEFAULT_SIGNATURE

        def read(signature):
            arrays = from_json.arrays(document, signature, self.options)
            return open_inference.with_options(arrays, options, signature_name, signature)

        with self._use(name, number) as version:
            outputs = await self._outputs(version, signature_name, read, parameters, details)
        return to_json.response(outputs, "instances" in document)

    async def infer(
        self, name: str, number: int | None, body: bytes, length: str | None, details: dict
    ) -> tuple[Iterator[bytes], dict[str, str]]:
        """Answer a request of the Open Inference Protocol, in pieces and with headers. Arguments
        are those of `predict`; `length` is the header with the length of the body's JSON.
        """
        request = await asyncio.to_thread(open_inference.read, body, length)
        with self._use(name, number) as version:
            outputs = await self._outputs(
                version, request.signature_name, request.arrays, request.parameters, details
            )
            return await asyncio.to_thread(request.answer, outputs, name, version.number)

    async def _outputs(self, version, signature_name, read, parameters, details):
        """Run a version's signature on the arrays that `read` returns for a `Signature`, within the
        request's `timeout`.
        """
        # From microseconds. 0: no limit.
        limit = min(parameters.get("timeout", 0), 2**60) / 1e6 or None
        try:
            async with asyncio.timeout(limit):
                return await self._run(version, signature_name, read, parameters, details)
        except TimeoutError as error:
            raise RequestError(
                f"It took longer than the request's timeout, {limit:g} s.", 504
            ) from error

    async def _run(self, version, signature_name, read, parameters, details):
        details["version"] = version.number
        signature = version.signature(signature_name)
        details["signature"] = signature_name
        glossary = parameters.get("glossary", {})
        task = await asyncio.to_thread(self._task, version, signature_name, read, glossary)
        details["rows"] = task.count
        key = (version.number, signature_name, task.options_key)
        most_rows = max(1, self.options.most_memory // max(task.row_memory, 1))
        parts = []
        # One after the other: the batcher runs large batches so, and each part takes a queue place.
        for part in in_parts(task, min(most_rows, self.options.max_batch_size)):
            future = self.batcher.submit(
                part,
                lambda inputs, cancellation: version.model.run(
                    signature_name, inputs, cancellation
                ),
                # Requests without rows cannot be told apart in a batch.
                key if signature.is_mergeable and task.inputs else None,
            )
            try:
                parts.append(await asyncio.wrap_future(future))
            finally:
                future.cancel()
        if len(parts) == 1:
            return parts[0]
        return await asyncio.to_thread(
            lambda: {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        )

    def status(self, name: str, number: int | None = None) -> dict:
        """Return TF Serving's GetModelStatusResponse: the states of all versions, or of one."""
        states = {**self.versions.states} if name == self.name else {}
        if number is not None and number not in states:
            raise RequestError(f"Could not find version {number} of model {name}", 404)
        if not states:
            raise RequestError(f"Could not find any versions of model {name}", 404)
        statuses = []
        for version in sorted(states, reverse=True) if number is None else [number]:
            state = states[version]
            error = {"error_code": "UNKNOWN" if state.error else "OK", "error_message": state.error}
            statuses.append({"version": str(version), "state": state.state, "status": error})
        return {"model_version_status": statuses}

    def metadata(self, name: str, number: int | None = None) -> dict:
        """Return TF Serving's GetModelMetadataResponse: the signatures of a version."""
        with self._use(name, number) as version:
            return {
                "model_spec": {"name": name, "signature_name": "", "version": str(version.number)},
                "metadata": {"signature_def": {"signature_def": version.model.signature_defs}},
            }

    def description(
        self, name: str, number: int | None = None, signature_name: str | None = None
    ) -> dict:
        """Return the Open Inference Protocol's metadata of a version, for one of its signatures."""
        with self._use(name, number) as version:
            signature = version.signature(signature_name or DEFAULT_SIGNATURE)
            return {
                "name": name,
                "versions": [*map(str, self.versions.available())],
                "platform": version.model.platform,
                "inputs": open_inference.tensors(signature.inputs, signature.defaults),
                "outputs": open_inference.tensors(signature.outputs),
                "parameters": {"signatures": ", ".join(sorted(version.model.signatures))},
            }

    def is_ready(self, name: str, number: int | None = None) -> bool:
        """Whether a model, or one version of it, is served."""
        with contextlib.suppress(RequestError), self._use(name, number):
            return True
        return False

    def _use(self, name, number):
        if name != self.name:
            raise not_served(name, number)
        return self.versions.use(name, number)

    def _task(self, version, name, read, glossary):
        """Return a request to the signature `name` as `Rows`."""
        signature = version.model.signatures[name]
        task = self._with_terms(glossary, rows(read(signature), signature, self.options), version)
        return costs.within_limits(name, signature, task, version.sizes, self.options)

    def _with_terms(self, terms, task, version):
        """Mark the glossary's terms, the request's and the server's, in a request's texts."""
        if not isinstance(terms, dict) or not all(isinstance(to, str) for to in terms.values()):
            raise RequestError('"glossary" must be an object of terms and their translations.')
        longest = max(map(len, (*terms, *terms.values())), default=0)
        if len(terms) > MOST_TERMS or longest > LONGEST_TERM:
            raise RequestError(
                f'"glossary" must have at most {MOST_TERMS:,} terms, of {LONGEST_TERM} characters. '
                f"Received: {len(terms):,}, the longest of {longest:,}. For more, start the server "
                "with --glossary."
            )
        if "text" not in task.inputs or not (terms or version.terms):
            return task
        texts = task.inputs["text"]
        codec = ("utf-8", "surrogateescape")
        try:
            own = version.glossary
            glossary = Glossary(terms, own.protected, own) if terms else own
            lines = (text.decode(*codec) for text in texts.reshape(-1))
            marked = [glossary.applied(line).encode(*codec) for line in lines]
        # Terms may have half a surrogate pair.
        except ValueError as error:
            raise RequestError(str(error)) from error
        inputs = {**task.inputs, "text": np.array(marked, object).reshape(texts.shape)}
        refuse_long(inputs, self.options)
        return dataclasses.replace(task, inputs=inputs)
