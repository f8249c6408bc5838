"""`ladder run`: every rung on a few shapes, or on one, with a verdict; or one rung with its own options."""

import os

from tools import build
from tools.rung import Case, execute, sizes_of
from tools.terminal import Parser, Progress, Refusal, note, say

# Shapes for a first look: one tile, ragged in M and N, and a small language model's attention output while decoding.
SHAPES = [(512, 512, 512, "f16"), (1000, 1032, 2056, "bf16"), (64, 2048, 2048, "bf16")]
COMMON = (1000, 1032, 16, "f16")  # step00 takes K = 16 only, so this one is for all


def cases(names, shape=None, dtype="f16"):
    """(group, case): cases of one group have the same inputs, and so must give the same bits. With a shape, every rung runs
    that one, step00 at its own K."""
    for name in names:
        if shape:
            m, n, k = shape
            k = 16 if name.startswith("step00") else k
            yield f"K = {k}", Case(name, m, n, k, dtype, on="auto")
            continue
        m, n, k, dtype = COMMON
        yield "common", Case(name, m, n, k, dtype, on="auto")
        if not name.startswith("step00"):
            for each in SHAPES:
                yield str(each), Case(name, *each, on="auto")


def summary(shape=None, dtype="f16"):
    names = build.rungs()
    if not names:
        note("There is no rung to run yet.")
        return 1
    work = list(cases(names, shape, dtype))
    progress = Progress(len(work), "running")
    hashes, failures, device = {}, 0, None
    for group, case in work:
        progress.step(f"{case.rung} {case.shape}")
        outcome = execute(case)
        progress.end()
        if device is None and outcome.report:
            device = headline(outcome.report.get("device", {}))
            say(device + "\n")
            say(f"{'rung':<20}{'M x N x K':<18}{'in':<6}{'out':<6}{'compared bit for bit':<28}{'bits of D':<18}{'seconds':>8}")
        if outcome.good:
            report = outcome.report
            hashes.setdefault(group, set()).add(report["d_hash"])
            say(f"{case.rung:<20}{case.shape:<18}{case.dtype:<6}{case.out_dtype:<6}{verdict(report):<28}"
                f"{report['d_hash'][:16]:<18}{outcome.seconds:>8.2f}")
        else:
            failures += 1
            say(f"{case.rung:<20}{case.shape:<18}{case.dtype:<6}{case.out_dtype:<6}FAILED, exit status {outcome.status}")
            say("    " + outcome.text.strip().replace("\n", "\n    "))
            say(f"    Again: {case.command_line()}")
    different = sum(len(found) > 1 for found in hashes.values())
    say()
    if failures:
        say(f"{failures} of {len(work)} runs failed.")
    elif different:
        say("All runs passed their checks, but rungs differ in the bits of D where their inputs were the same.")
    else:
        say(f"All {len(work)} runs passed; rungs with the same inputs gave the same bits of D.")
    return 1 if failures or different else 0


def headline(device):
    if device.get("emulated"):
        return (f"No GPU for these kernels here: an emulated {device.get('chip', '').upper()} executes their PTX. Its results are "
                "exact to the bit; its times are this machine's.")
    return f"Running on {device.get('name', 'the GPU')}."


def verdict(report):
    """How many outputs a passed check compared bit for bit, and how it covered the others."""
    compared, all_of_them = report["check"]["compared"], report["m"] * report["n"]
    return "all" if compared == all_of_them else f"{compared:,}; rest by projection"


def of_all(arguments):
    """Shape and type for a run of all rungs; no shape: each rung's own few."""
    if not arguments:
        return None, "f16"
    if arguments[0] not in ("--shape", "--dtype"):
        raise Refusal(f"{arguments[0]}: options come behind the rung, as in ./ladder run step01 {arguments[0]} ...")
    parser = Parser(prog="ladder run")
    parser.add_argument("--shape", required=True)
    parser.add_argument("--dtype", default="f16", choices=["f16", "bf16"])
    options = parser.parse_args(arguments)
    return sizes_of(options.shape), options.dtype


def command(arguments):
    if arguments and arguments[0] in ("-h", "--help"):
        say("usage: ./ladder run                                          every rung on a few shapes\n"
            "       ./ladder run --shape MxNxK [--dtype f16|bf16]         every rung on one (step00 at K = 16)\n"
            "       ./ladder run stepNN [options]                         one rung; ./ladder run stepNN --help lists its options")
        return 0
    if arguments and not arguments[0].startswith("-"):
        build.named(arguments[0])  # before anything is built
        build.build(quiet=True, target="rungs")
        path = build.rung(arguments[0])
        os.execv(path, [str(path), *arguments[1:]])
    shape, dtype = of_all(arguments)
    build.build(quiet=True, target="rungs")
    return summary(shape, dtype)
