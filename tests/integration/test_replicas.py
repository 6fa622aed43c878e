"""Several hosts train one run: one writes, all stop at the same step, and the others report a lost
host. And on one machine a run resumes after a kill or SIGTERM.
"""

import json
import re
import signal

import pytest
from integration.conftest import are_equal, newest_weights
from shell import read_until, tf_configs

from keras_transformer.training import checkpoint

RUN = "run"
LONGEST_SECONDS = 300
# Whatever TF_CPP_MIN_LOG_LEVEL says, TensorFlow's C++ sometimes logs that a data set is not
# optimized, or that a host has ended. An entry reaches to the next one, or to a message of ours.
TENSORFLOW_LOG = re.compile(
    rb"^[WE]\d{4} \d\d:\d\d:.*\n(?:(?![WE]\d{4} |error: |Traceback).*\n)*", re.MULTILINE
)
TRAIN = ["train", "--flagfile=toy.flags", "--mixed_precision=float32", "--validation_sentences=0"]
TRAIN += ["--distribution=multi_worker", "--d_model=16", "--d_ff=16", "--num_heads=2"]
TRAIN += ["--beam_size=1"]


class Job:
    """The running hosts of a run, each in a folder of its own beside the run's; the first is the
    chief.
    """

    def __init__(self, shell, *flags):
        self.shell = shell
        where = f"--model_dir={shell.folder / RUN}"
        folders = [shell.another(name) for name in ("chief", "worker")]
        self.hosts = [
            folder.start(*TRAIN, where, *flags, TF_CONFIG=config)
            for folder, config in zip(folders, tf_configs(2), strict=True)
        ]

    def wait_for_epoch(self):
        """The output of the chief until the end of an epoch."""
        return read_until(self.hosts[0], b"  step ")

    def results(self):
        """Exit status, output and errors of each host."""
        outputs = [host.communicate(timeout=LONGEST_SECONDS) for host in self.hosts]
        return [
            (host.returncode, output, TENSORFLOW_LOG.sub(b"", errors))
            for host, (output, errors) in zip(self.hosts, outputs, strict=True)
        ]


@pytest.fixture
def start(fresh_shell):
    """A function that starts a `Job`, whose hosts are killed at the end of the test."""
    jobs = []

    def start(*flags):
        jobs.append(Job(fresh_shell, *flags))
        return jobs[-1]

    yield start
    for host in (host for job in jobs for host in job.hosts):
        host.kill()
        host.communicate()


def test_the_pattern_of_tensorflow_s_log_removes_nothing_of_ours():
    log = b"E0000 00:00:1.2 3 base.cc:252] StartAbort\nAdditional information:\n:{refused}\n"
    assert TENSORFLOW_LOG.sub(b"", log + b"W0000 00:00:1.3 4 dataset.cc:997] Input\n") == b""
    for ours in (
        b"error: another host is gone.\n",
        b"Traceback (most recent call last):\n  File\n",
    ):
        assert TENSORFLOW_LOG.sub(b"", ours + log) == TENSORFLOW_LOG.sub(b"", log + ours) == ours
    assert TENSORFLOW_LOG.sub(b"", b"warning\n" + log) == b"warning\n"


def newest_step(shell):
    path = checkpoint.checkpoints(shell.folder / RUN / "checkpoints")[-1]
    return json.loads(str(checkpoint.read_archive(path)["progress"]))["step"]


def files(shell):
    paths = (path for path in shell.folder.rglob("*") if path.is_file())
    return {str(path.relative_to(shell.folder)) for path in paths}


def processes_that_logged(shell):
    """The process ids in names of TensorBoard's files:
    `events.out.tfevents.<time>.<host>.<process>.<number>.v2`.
    """
    logs = (shell.folder / RUN / "logs").rglob("events.*")
    return {int(log.name.split(".")[-3]) for log in logs}


@pytest.mark.slow
def test_a_run_of_two_hosts_survives_a_preemption_and_the_loss_of_a_host(fresh_shell, start):
    # 1. SIGTERM to any host ends the run on all.
    job = start()
    begun = job.wait_for_epoch()
    assert b"each update in 2 batches: 2 replicas, 1 of each" in begun
    job.hosts[1].send_signal(signal.SIGTERM)
    (chief_status, chief_output, chief_errors), (status, output, errors) = job.results()
    assert (chief_status, chief_errors, status, errors) == (0, b"", 0, b"")
    preempted_at = newest_step(fresh_shell)
    message = f"SIGTERM: step {preempted_at} is saved; the same command resumes.".encode()
    assert message in chief_output
    assert output.endswith(b"SIGTERM: the first host saves the run.\n")
    assert not {"run/averaged.npz", "run/evaluation.json"} & files(fresh_shell)

    # 2. The other host reports a lost one.
    job = start("--checkpoint_minutes=0")
    assert f"going on from step {preempted_at} ".encode() in job.wait_for_epoch()
    job.hosts[1].kill()
    (status, _, errors), (lost, _, _) = job.results()
    assert lost == -signal.SIGKILL
    assert status == 1
    assert errors.startswith(b"error: another host is gone (")
    assert errors.endswith(b"Start all again: the run resumes from its last checkpoint.\n")
    assert errors.count(b"\n") == 1
    lost_at = newest_step(fresh_shell)
    assert lost_at > preempted_at

    # 3. Restarted, both finish; only the chief writes.
    chiefs = processes_that_logged(fresh_shell)
    job = start(f"--max_steps={lost_at + 3}")
    (chief_status, chief_output, chief_errors), (status, output, errors) = job.results()
    assert (chief_status, chief_errors, status, errors) == (0, b"", 0, b"")
    assert f"going on from step {lost_at} ".encode() in chief_output
    assert f"going on from step {lost_at} ".encode() in output
    assert newest_step(fresh_shell) == lost_at + 3
    assert b"exported to" in chief_output
    assert b"exported to" not in output
    assert processes_that_logged(fresh_shell) == {*chiefs, job.hosts[0].pid}
    assert len(chiefs) == 2
    text = (fresh_shell.folder / RUN / "history.jsonl").read_text(encoding="utf-8")
    history = [json.loads(line) for line in text.splitlines()]
    assert len({line["step"] for line in history}) == len(history)
    written = files(fresh_shell)
    assert {"run/averaged.npz", "run/evaluation.json"} <= written
    assert "chief/saved_models/run/1/saved_model.pb" in written
    assert not [name for name in written if name.startswith("worker/") or name.endswith(".tmp")]


TOY_RUN = "runs/reverse_words_reversed"


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_bit_for_bit_equal(uninterrupted, kill_and_resume):
    kill_and_resume(uninterrupted.training, uninterrupted, TOY_RUN)


@pytest.mark.slow
def test_on_sigterm_a_run_is_saved_and_resumes_bit_for_bit(uninterrupted, fresh_shell):
    process = fresh_shell.start(*uninterrupted.training)
    read_until(process, b"epoch 1 ")
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (0, b"")
    preempted, whole = (newest_weights(shell, TOY_RUN) for shell in (fresh_shell, uninterrupted))
    step = json.loads(str(preempted["progress"]))["step"]
    expected = [f"SIGTERM: step {step} is saved; the same command resumes."]
    assert [line for line in stdout.decode().splitlines() if "SIGTERM" in line] == expected
    assert not (fresh_shell.folder / TOY_RUN / "averaged.npz").exists()

    resumed = fresh_shell.run(*uninterrupted.training)
    assert f"going on from step {step} ".encode() in resumed.stdout
    assert are_equal(newest_weights(fresh_shell, TOY_RUN), whole)
    assert not are_equal(preempted, whole)
    assert (fresh_shell.folder / TOY_RUN / "averaged.npz").exists()
