"""Every instruction of PTX ISA 9.0 in the spellings that its chapters 9.7 and 10 allow, each as one line of PTX.

Spellings are products of modifiers, so that a good part of them is not valid; ptxas says which are (isa.py asks it).
Registers: p predicate, h 16 bits, r 32, d 64, q 128; numbered from 0. Memory operands use %d9 (global), %r9 (shared)."""

import itertools

U = ("u16", "u32", "u64")
S = ("s16", "s32", "s64")
B = ("b16", "b32", "b64")
RND = ("", ".rn", ".rz", ".rm", ".rp")
FTZ = ("", ".ftz")
SAT = ("", ".sat")


def width(type_name):
    """The letter of a register that holds a value of the type."""
    for suffix, letter in (("f32x2", "d"), ("16x2", "r"), ("tf32", "r"), ("128", "q"), ("64", "d"), ("32", "r"),
                           ("16", "h"), ("pred", "p"), ("x4", "r"), ("x2", "h"), ("8", "h")):
        if type_name.endswith(suffix):
            return letter
    raise ValueError(type_name)


def regs(letters):
    """ "rrr" -> "%r0, %r1, %r2"; anything else is taken as it is."""
    count = {}
    out = []
    for letter in letters:
        n = count.get(letter, 0)
        count[letter] = n + 1
        out.append(f"%{letter}{n}")
    return ", ".join(out)


def make(*parts):
    """Products: strings stay, tuples are choices."""
    choices = [part if isinstance(part, tuple) else (part,) for part in parts]
    for combination in itertools.product(*choices):
        yield "".join(combination)


def uniform(opcode, types, operands, *modifiers):
    """opcode{modifiers}.type d, a, b, ... all of that type."""
    for t in types:
        for head in make(opcode, *modifiers, "." + t):
            yield head + " " + regs(width(t) * operands)


def vector(letter, count):
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def integer():
    yield from uniform("add", U + S + ("u16x2", "s16x2"), 3, SAT)
    yield from uniform("sub", U + S, 3, SAT)
    for t in U + S:
        wide = {"h": "r", "r": "d", "d": "q"}[width(t)]
        n = width(t)
        for mode in ("hi", "lo", "wide"):
            yield f"mul.{mode}.{t} " + regs((wide if mode == "wide" else n) + n * 2)
            yield f"mad.{mode}.{t} " + (
                f"%{wide}0, %{n}0, %{n}1, %{wide}1" if mode == "wide" else regs(n * 4))
    yield "mad.hi.sat.s32 " + regs("rrrr")
    for op, n in (("mul24", 3), ("mad24", 4)):
        for t in ("u32", "s32"):
            yield from make(op, (".hi", ".lo"), "." + t + " " + regs("r" * n))
    yield "mad24.hi.sat.s32 " + regs("rrrr")
    yield from uniform("sad", U + S, 4)
    yield from uniform("div", U + S, 3)
    yield from uniform("rem", U + S, 3)
    yield from uniform("abs", S, 2)
    yield from uniform("neg", S, 2)
    yield from uniform("min", U + S + ("u16x2", "s16x2"), 3)
    yield from uniform("max", U + S + ("u16x2", "s16x2"), 3)
    yield from make(("min", "max"), (".relu.s16x2 ", ".relu.s32 ", ".s16x2.relu ", ".s32.relu "), regs("rrr"))
    for t in ("b32", "b64"):
        n = width(t)
        yield f"popc.{t} %r0, %{n}1"
        yield f"clz.{t} %r0, %{n}1"
        yield f"brev.{t} " + regs(n * 2)
    for t in ("u32", "s32", "u64", "s64"):
        n = width(t)
        yield from make("bfind", ("", ".shiftamt"), f".{t} %r0, %{n}1")
        yield f"bfe.{t} %{n}0, %{n}1, %r2, %r3"
    for t in ("b32", "b64"):
        n = width(t)
        yield f"bfi.{t} %{n}0, %{n}1, %{n}2, %r3, %r4"
    yield "fns.b32 " + regs("rrrr")
    yield from make("szext", (".clamp", ".wrap"), (".u32 ", ".s32 "), regs("rrr"))
    yield from make("bmsk", (".clamp", ".wrap"), ".b32 ", regs("rrr"))
    for a, b in itertools.product(("u32", "s32"), repeat=2):
        yield f"dp4a.{a}.{b} " + regs("rrrr")
        yield from make("dp2a", (".lo", ".hi"), f".{a}.{b} " + regs("rrrr"))
    for t in ("u32", "s32", "u64", "s64"):
        n = width(t)
        for op in ("add.cc", "addc", "addc.cc", "sub.cc", "subc", "subc.cc"):
            yield f"{op}.{t} " + regs(n * 3)
        for op in ("mad", "madc"):
            for cc in ("", ".cc"):
                for mode in ("lo", "hi"):
                    yield f"{op}.{mode}{cc}.{t} " + regs(n * 4)


def real():
    for op in ("add", "sub", "mul"):
        yield from uniform(op, ("f32",), 3, RND, FTZ, SAT)
        yield from uniform(op, ("f32x2",), 0, RND, FTZ)
        for head in make(op, RND, FTZ, ".f32x2 "):
            yield head + regs("ddd")
        yield from uniform(op, ("f64",), 3, RND)
        yield from uniform(op, ("f16", "f16x2"), 3, ("", ".rn"), FTZ, SAT)
        yield from uniform(op, ("bf16", "bf16x2"), 3, ("", ".rn"))
        if op != "mul":
            for t in ("f16", "bf16"):
                yield from make(op, RND, SAT, f".f32.{t} %r0, %h0, %r1")
    for op in ("fma", "mad"):
        yield from uniform(op, ("f32",), 4, RND, FTZ, SAT)
        yield from uniform(op, ("f64",), 4, RND)
    for head in make("fma", RND, FTZ, ".f32x2 "):
        yield head + regs("dddd")
    for t in ("f16", "bf16"):
        yield from make("fma", RND, SAT, f".f32.{t} %r0, %h0, %h1, %r1")
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        yield from uniform("fma", (t,), 4, ".rn", FTZ, ("", ".sat", ".relu", ".oob", ".oob.relu"))
        yield from make("abs", FTZ, f".{t} " + regs(width(t) * 2))
        yield from make("neg", FTZ, f".{t} " + regs(width(t) * 2))
        yield from make(("min", "max"), FTZ, ("", ".NaN"), ("", ".xorsign.abs"), f".{t} " + regs(width(t) * 3))
        yield f"tanh.approx.{t} " + regs(width(t) * 2)
        yield from make("ex2.approx", ("", ".ftz"), f".{t} " + regs(width(t) * 2))
    for op in ("abs", "neg"):
        yield from make(op, FTZ, ".f32 " + regs("rr"))
        yield f"{op}.f64 " + regs("dd")
    yield from make(("min", "max"), FTZ, ("", ".NaN"), ("", ".xorsign.abs"), ".f32 ", (regs("rrr"), regs("rrrr")))
    yield from make(("min", "max"), ".f64 " + regs("ddd"))
    yield from make("copysign", (".f32 " + regs("rrr"), ".f64 " + regs("ddd")))
    yield from make("testp", (".finite", ".infinite", ".number", ".notanumber", ".normal", ".subnormal"),
                    (".f32 %p0, %r0", ".f64 %p0, %d0"))
    yield from make("div", (".approx", ".full", ".rn", ".rz", ".rm", ".rp"), FTZ, ".f32 " + regs("rrr"))
    yield from make("div", RND[1:], ".f64 " + regs("ddd"))
    for op in ("rcp", "sqrt"):
        yield from make(op, (".approx", ".rn", ".rz", ".rm", ".rp"), FTZ, ".f32 " + regs("rr"))
        yield from make(op, RND[1:], ".f64 " + regs("dd"))
    yield "rcp.approx.ftz.f64 " + regs("dd")
    yield from make("rsqrt.approx", FTZ, (".f32 " + regs("rr"), ".f64 " + regs("dd")))
    yield from make(("sin", "cos", "lg2", "ex2"), ".approx", FTZ, ".f32 " + regs("rr"))
    yield "tanh.approx.f32 " + regs("rr")


def comparison():
    order = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
             "num", "nan")
    types = ("b16", "b32", "b64") + U + S + ("f16", "bf16", "f32", "f64")
    for t in types:
        n = width(t)
        for c in order:
            yield from make(f"setp.{c}", ("", ".ftz") if t in ("f16", "f32") else "", f".{t} %p0, %{n}0, %{n}1")
    for t in ("f16x2", "bf16x2"):
        for c in order:
            yield f"setp.{c}.{t} %p0|%p1, %r0, %r1"
    for t in types:
        n = width(t)
        for b in ("and", "or", "xor"):
            yield f"setp.lt.{b}.{t} %p0|%p1, %{n}0, %{n}1, %p2"
        for d in ("u32", "s32", "f32", "f16", "bf16", "u16"):
            yield from make("set.lt", ("", ".and", ".or", ".xor"), f".{d}.{t} ",
                            (f"%{width(d)}0, %{n}1, %{n}2", f"%{width(d)}0, %{n}1, %{n}2, %p0"))
        yield f"selp.{t} %{n}0, %{n}1, %{n}2, %p0"
        yield from make("slct", FTZ, f".{t}", (".s32", ".f32"), f" %{n}0, %{n}1, %{n}2, %r7")
    for t in ("f16x2", "bf16x2"):
        for d in ("f16x2", "bf16x2", "u32"):
            yield from make("set.lt", ("", ".ftz"), f".{d}.{t} " + regs("rrr"))


def logic():
    for op in ("and", "or", "xor"):
        yield from uniform(op, B + ("pred",), 3)
    yield from uniform("not", B + ("pred",), 2)
    yield from uniform("cnot", B, 2)
    yield "lop3.b32 " + regs("rrrr") + ", 0x96"
    yield from make("lop3", (".and", ".or"), ".b32 %r0|%p0, %r1, %r2, %r3, 0x96, %p1")
    yield from make("lop3", (".and", ".or"), ".b32 _|%p0, %r1, %r2, %r3, 0x96, %p1")
    yield from make("shf", (".l", ".r"), (".clamp", ".wrap"), ".b32 " + regs("rrrr"))
    for t in B:
        yield f"shl.{t} %{width(t)}0, %{width(t)}1, %r5"
    for t in B + U + S:
        yield f"shr.{t} %{width(t)}0, %{width(t)}1, %r5"


def moves():
    for t in B + U + S + ("f32", "f64", "pred", "b128"):
        yield f"mov.{t} " + regs(width(t) * 2)
    yield "mov.b32 {%h0, %h1}, %r0"
    yield "mov.b32 %r0, {%h0, %h1}"
    yield "mov.b64 {%r0, %r1}, %d0"
    yield "mov.b64 %d0, {%r0, %r1}"
    yield "mov.b64 {%h0, %h1, %h2, %h3}, %d0"
    yield "mov.b128 {%d0, %d1}, %q0"
    yield "mov.b128 %q0, {%d0, %d1}"
    yield "mov.b16 {%b0, %b1}, %h0"
    yield "mov.b32 {%b0, %b1, %b2, %b3}, %r0"
    yield "mov.b32 %r0, {%b0, %b1, %b2, %b3}"
    yield "mov.u64 %d0, in_global"
    yield "mov.u32 %r0, in_shared"
    yield "mov.u64 %d0, in_const"
    yield "mov.u64 %d0, function"
    for name in ("tid.x", "ntid.y", "laneid", "warpid", "nwarpid", "ctaid.z", "nctaid.x", "smid", "nsmid",
                 "is_explicit_cluster", "clusterid.x", "nclusterid.x", "cluster_ctaid.x", "cluster_nctaid.x",
                 "cluster_ctarank", "cluster_nctarank", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge",
                 "lanemask_gt", "clock", "clock_hi", "globaltimer_lo", "globaltimer_hi", "pm0", "pm7", "envreg0",
                 "envreg1", "envreg31", "total_smem_size", "aggr_smem_size", "dynamic_smem_size",
                 "reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap",
                 "reserved_smem_offset_0", "reserved_smem_offset_1"):
        yield (f"mov.pred %p0, %{name}" if name == "is_explicit_cluster" else f"mov.u32 %r0, %{name}")
    for name in ("gridid", "clock64", "globaltimer", "pm0_64", "current_graph_exec"):
        yield f"mov.u64 %d0, %{name}"
    yield from make("prmt.b32", ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"), " " + regs("rrrr"))
    yield from make("shfl.sync", (".up", ".down", ".bfly", ".idx"), ".b32 ", ("%r0", "%r0|%p0"), ", %r1, 1, 31, -1")
    yield from make("shfl", (".up", ".down", ".bfly", ".idx"), ".b32 ", ("%r0", "%r0|%p0"), ", %r1, 1, 31")
    for space in ("const", "global", "local", "param", "param::entry", "shared", "shared::cta", "shared::cluster"):
        yield f"cvta.{space}.u64 " + regs("dd")
        yield f"cvta.to.{space}.u64 " + regs("dd")
        yield f"isspacep.{space} %p0, %d0"
    yield "mapa.u64 %d0, %d1, %r0"
    yield "mapa.shared::cluster.u32 %r0, %r1, %r2"
    yield "mapa.shared::cluster.u64 %d0, %d1, %r2"
    yield "getctarank.u64 %r0, %d0"
    yield "getctarank.shared::cluster.u32 %r0, %r1"
    yield "getctarank.shared::cluster.u64 %r0, %d1"


def conversions():
    ints = ("u8", "s8") + U + S
    floats = ("f16", "bf16", "f32", "f64")
    rounding = ("", ".rni", ".rzi", ".rmi", ".rpi", ".rn", ".rz", ".rm", ".rp", ".rna")
    for d, s in itertools.product(ints + floats, repeat=2):
        yield from make("cvt", rounding, FTZ, SAT, f".{d}.{s} %{width(d)}0, %{width(s)}1")
    yield from make("cvt.pack.sat", (".u16", ".s16"), ".s32 " + regs("rrr"))
    yield from make("cvt.pack.sat", (".u8", ".s8", ".u4", ".s4", ".u2", ".s2"), ".s32.b32 " + regs("rrrr"))
    for d in ("f16", "bf16", "tf32"):
        yield from make("cvt", (".rn", ".rz", ".rna"), ("", ".satfinite", ".relu", ".relu.satfinite", ".satfinite.relu"),
                        f".{d}.f32 %{width(d)}0, %r1")
    for d in ("f16x2", "bf16x2"):
        yield from make("cvt", (".rn", ".rz"), ("", ".relu"), ("", ".satfinite"), f".{d}.f32 %r0, %r1, %r2")
        yield from make("cvt.rs", ("", ".relu"), ("", ".satfinite"), f".{d}.f32 %r0, %r1, %r2, %r3")
    for d in ("e4m3x2", "e5m2x2"):
        yield from make("cvt.rn.satfinite", ("", ".relu"), f".{d}.f32 %h0, %r1, %r2")
        yield from make("cvt.rn.satfinite", ("", ".relu"), f".{d}.f16x2 %h0, %r1")
        yield from make("cvt.rn.satfinite", ("", ".relu"), f".{d}.bf16x2 %h0, %r1")
        yield from make("cvt.rn", ("", ".relu"), f".f16x2.{d} %r0, %h1")
        yield from make("cvt.rn", ("", ".relu"), f".bf16x2.{d} %r0, %h1")
    for d in ("e2m3x2", "e3m2x2"):
        yield from make("cvt.rn.satfinite", ("", ".relu"), f".{d}.f32 %h0, %r1, %r2")
        yield from make("cvt.rn", ("", ".relu"), f".f16x2.{d} %r0, %h1")
        yield from make("cvt.rn.satfinite", ("", ".relu"), (f".{d}.f16x2 %h0, %r1", f".{d}.bf16x2 %h0, %r1"))
    yield from make("cvt.rn.satfinite", ("", ".relu"), ".e2m1x2.f32 %b0, %r1, %r2")
    yield from make("cvt.rn", ("", ".relu"), ".f16x2.e2m1x2 %r0, %b1")
    yield from make("cvt.rn", ("", ".relu"), ".bf16x2.e2m1x2 %r0, %b1")
    yield from make("cvt", (".rz", ".rp"), ("", ".satfinite"),
                    (".ue8m0x2.f32 %h0, %r1, %r2", ".ue8m0x2.bf16x2 %h0, %r1"))
    yield "cvt.rn.bf16x2.ue8m0x2 %r0, %h1"
    for d in ("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4"):
        yield from make("cvt.rs", ("", ".relu"), f".satfinite.{d}.f32 %r0, {{%r1, %r2, %r3, %r4}}, %r5")
    yield from make("cvt.rs", ("", ".relu"), ".satfinite.e2m1x4.f32 %h0, {%r1, %r2, %r3, %r4}, %r5")
    yield from make("szext", (".clamp", ".wrap"), ".u32 " + regs("rrr"))


def memory():
    types = ("b8", "u8", "s8") + B + U + S + ("f32", "f64", "b128")
    cache_ld = ("", ".ca", ".cg", ".cs", ".lu", ".cv")
    cache_st = ("", ".wb", ".cg", ".cs", ".wt")
    spaces = (("", "%d9"), (".global", "%d9"), (".shared", "%r9"), (".shared::cta", "%r9"),
              (".shared::cluster", "%r9"), (".local", "%d9"), (".const", "%d9"))

    def held(t):
        return "h" if t.endswith("8") and not t.endswith("128") else width(t)

    for t in types:
        n = held(t)
        for space, a in spaces:
            yield f"ld{space}.{t} %{n}0, [{a}]"
            if space != ".const":
                yield f"st{space}.{t} [{a}], %{n}0"
        for count in (2, 4, 8):
            for space, a in spaces:
                yield f"ld{space}.v{count}.{t} {vector(n, count)}, [{a}]"
                if space != ".const":
                    yield f"st{space}.v{count}.{t} [{a}], {vector(n, count)}"
    for c in cache_ld:
        yield f"ld.global{c}.u32 %r0, [%d9]"
        yield f"ld.global{c}.nc.u32 %r0, [%d9]"
    for c in cache_st:
        yield f"st.global{c}.u32 [%d9], %r0"
    evict1 = ("", ".L1::evict_normal", ".L1::evict_unchanged", ".L1::evict_first", ".L1::evict_last",
              ".L1::no_allocate")
    for e in evict1:
        for f in ("", ".L2::evict_normal", ".L2::evict_first", ".L2::evict_last"):
            for v, n in ((".v4.b64", vector("d", 4)), (".v8.b32", vector("r", 8)), (".u32", "%r0")):
                for prefetch in ("", ".L2::64B", ".L2::128B", ".L2::256B"):
                    yield f"ld.global{e}{f}{prefetch}{v} {n}, [%d9]"
                    yield f"ld.global.nc{e}{f}{prefetch}{v} {n}, [%d9]"
                    yield f"ld.global{e}{f}.L2::cache_hint{prefetch}{v} {n}, [%d9], %d8"
                    yield f"ld.global.nc{e}{f}.L2::cache_hint{prefetch}{v} {n}, [%d9], %d8"
                yield f"st.global{e}{f}{v} [%d9], {n}"
                yield f"st.global{e}{f}.L2::cache_hint{v} [%d9], {n}, %d8"
    scopes = ("", ".cta", ".cluster", ".gpu", ".sys")
    for space, a in spaces[:5]:
        for sem in (".weak", ".relaxed", ".acquire", ".volatile", ".mmio.relaxed"):
            for scope in scopes:
                for t, n in (("u32", "r"), ("b64", "d"), ("b128", "q")):
                    yield f"ld{sem}{scope}{space}.{t} %{n}0, [{a}]"
        for sem in (".weak", ".relaxed", ".release", ".volatile", ".mmio.relaxed"):
            for scope in scopes:
                for t, n in (("u32", "r"), ("b64", "d"), ("b128", "q")):
                    yield f"st{sem}{scope}{space}.{t} [{a}], %{n}0"
    for t in ("b8", "b32", "b64", "b128"):
        yield f"ld.const.{t} %{held(t)}0, [in_const]"
    for t in ("u32", "f64", "b128"):
        yield f"ldu.global.{t} %{width(t)}0, [%d9]"
        yield f"ldu.{t} %{width(t)}0, [%d9]"
    yield "ldu.global.v4.f32 " + vector("r", 4) + ", [%d9]"
    yield "ld.param.u64 %d0, [p0]"
    yield "ld.param::entry.u64 %d0, [p0]"
    for where in ("", ".global", ".local"):
        yield from make(f"prefetch{where}", (".L1", ".L2"), " [%d9]")
    yield from make("prefetch.global", (".L2::evict_last", ".L2::evict_normal"), " [%d9]")
    yield "prefetchu.L1 [%d9]"
    yield from make("prefetch", ("", ".const", ".param"), ".tensormap [%d9]")
    yield from make("applypriority", ("", ".global"), ".L2::evict_normal [%d9], 128")
    yield from make("discard", ("", ".global"), ".L2 [%d9], 128")
    for p in (".L2::evict_last", ".L2::evict_normal", ".L2::evict_first", ".L2::evict_unchanged"):
        yield f"createpolicy.fractional{p}.b64 %d0, 0.5"
        yield f"createpolicy.fractional{p}.b64 %d0"
        yield f"createpolicy.fractional{p}.L2::evict_first.b64 %d0, 0.5"
        yield f"createpolicy.fractional{p}.L2::evict_unchanged.b64 %d0, 0.5"
        yield from make("createpolicy.range", ("", ".global"), p, ("", ".L2::evict_first", ".L2::evict_unchanged"),
                        ".b64 %d0, [%d9], %r0, %r1")
    yield "createpolicy.cvt.L2.b64 %d0, %d1"
    yield "st.bulk.weak.shared::cta [%r9], %d0, 0"
    yield "st.bulk [%d9], %d0, 0"
    yield from make("st.async", (".weak", ""), ".shared::cluster.mbarrier::complete_tx::bytes",
                    (".b32", ".u32", ".s32", ".f32"), " [%r9], %r0, [%r8]")
    yield from make("st.async.shared::cluster.mbarrier::complete_tx::bytes", (".b64", ".u64", ".s64", ".f64"),
                    " [%r9], %d0, [%r8]")
    yield "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r9], {%r0, %r1}, [%r8]"
    yield "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r9], {%r0, %r1, %r2, %r3}, [%r8]"
    yield "st.async.mmio.release.sys.global.u32 [%d9], %r0"
    yield from make("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes",
                    (".inc.u32", ".dec.u32", ".min.u32", ".max.s32", ".add.u32", ".and.b32", ".or.b32", ".xor.b32"),
                    " [%r9], %r0, [%r8]")
    yield "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%r9], %d0, [%r8]"
    yield "red.async.mmio.release.sys.global.add.u32 [%d9], %r0"


def atomics():
    spaces = (("", "%d9"), (".global", "%d9"), (".shared", "%r9"), (".shared::cluster", "%r9"))
    ops = [(op, t) for op in ("and", "or", "xor", "exch", "cas") for t in ("b16", "b32", "b64", "b128")]
    ops += [("add", t) for t in ("u32", "s32", "u64", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "s64")]
    ops += [(op, "u32") for op in ("inc", "dec")]
    ops += [(op, t) for op in ("min", "max") for t in ("u32", "s32", "u64", "s64", "f16", "f32")]
    for op, t in ops:
        n = width(t)
        noftz = ".noftz" if t in ("f16", "f16x2", "bf16", "bf16x2") and op == "add" else ""
        for space, a in spaces:
            for sem in ("", ".relaxed", ".acquire", ".release", ".acq_rel"):
                for scope in ("", ".gpu"):
                    source = f"%{n}1, %{n}2" if op == "cas" else f"%{n}1"
                    yield f"atom{sem}{scope}{space}.{op}{noftz}.{t} %{n}0, [{a}], {source}"
                    if op not in ("exch", "cas") and sem in ("", ".relaxed", ".release"):
                        yield f"red{sem}{scope}{space}.{op}{noftz}.{t} [{a}], %{n}1"
            for scope in (".cta", ".cluster", ".sys"):
                source = f"%{n}1, %{n}2" if op == "cas" else f"%{n}1"
                yield f"atom{scope}{space}.{op}{noftz}.{t} %{n}0, [{a}], {source}"
    for v, t in ((2, "f32"), (4, "f32"), (2, "f16"), (4, "f16"), (8, "f16"), (2, "bf16"), (4, "bf16"), (8, "bf16"),
                 (2, "f16x2"), (4, "f16x2"), (2, "bf16x2"), (4, "bf16x2")):
        n = width(t)
        for op in ("add", "min", "max"):
            noftz = "" if t == "f32" else ".noftz"
            second = "{" + ", ".join(f"%{n}{i + 8}" for i in range(v)) + "}"
            yield f"atom.global.{op}{noftz}.v{v}.{t} {vector(n, v)}, [%d9], {second}"
            yield f"atom.global.v{v}.{t}.{op}{noftz} {vector(n, v)}, [%d9], {second}"
            yield f"red.global.{op}{noftz}.v{v}.{t} [%d9], {second}"
    yield "atom.global.add.L2::cache_hint.u32 %r0, [%d9], %r1, %d8"
    yield "atom.global.L2::cache_hint.add.u32 %r0, [%d9], %r1, %d8"
    yield "red.global.L2::cache_hint.add.u32 [%d9], %r1, %d8"
    yield "red.global.add.L2::cache_hint.u32 [%d9], %r1, %d8"


def warp():
    yield from make("vote.sync", (".all", ".any", ".uni"), ".pred %p0, %p1, -1")
    yield "vote.sync.ballot.b32 %r0, %p1, -1"
    yield from make("vote", (".all", ".any", ".uni"), ".pred %p0, %p1")
    yield "vote.ballot.b32 %r0, %p1"
    yield from make("match.any.sync", (".b32 %r0, %r1, -1", ".b64 %r0, %d1, -1"))
    yield from make("match.all.sync", (".b32 %r0|%p0, %r1, -1", ".b64 %r0|%p0, %d1, -1", ".b32 %r0, %r1, -1"))
    yield "activemask.b32 %r0"
    yield from make("redux.sync", (".add", ".min", ".max"), (".u32", ".s32"), " %r0, %r1, -1")
    yield from make("redux.sync", (".and", ".or", ".xor"), ".b32 %r0, %r1, -1")
    yield from make("redux.sync", (".min", ".max"), ("", ".abs"), ("", ".NaN"), ".f32 %r0, %r1, -1")
    yield "elect.sync %r0|%p0, -1"
    yield "elect.sync _|%p0, -1"
    yield "bar.warp.sync -1"
    yield "barrier.warp.sync -1"


def barriers():
    for op in ("bar", "bar.cta", "barrier", "barrier.cta"):
        for aligned in ("",) if op.startswith("bar.") or op == "bar" else ("", ".aligned"):
            yield f"{op}.sync{aligned} 0"
            yield f"{op}.sync{aligned} 1, 64"
            yield f"{op}.arrive{aligned} 1, 64"
            yield f"{op}.red.popc{aligned}.u32 %r0, 1, %p0"
            yield f"{op}.red.popc{aligned}.u32 %r0, 1, 64, !%p0"
            yield from make(f"{op}.red", (".and", ".or"), f"{aligned}.pred %p0, 1, %p1")
    yield from make("barrier.cluster.arrive", ("", ".release", ".relaxed"), ("", ".aligned"))
    yield from make("barrier.cluster.wait", ("", ".acquire"), ("", ".aligned"))
    yield from make("membar", (".cta", ".gl", ".sys"))
    for sem in ("", ".sc", ".acq_rel", ".acquire", ".release"):
        for scope in (".cta", ".cluster", ".gpu", ".sys"):
            yield f"fence{sem}{scope}"
    yield "fence.acquire.sync_restrict::shared::cluster.cluster"
    yield "fence.release.sync_restrict::shared::cta.cluster"
    yield "fence.mbarrier_init.release.cluster"
    yield from make("fence.proxy", (".alias", ".async", ".async.global", ".async.shared::cta",
                                    ".async.shared::cluster"))
    yield from make("fence.proxy.tensormap::generic.release", (".cta", ".cluster", ".gpu", ".sys"))
    yield from make("fence.proxy.tensormap::generic.acquire", (".cta", ".cluster", ".gpu", ".sys"), " [%d9], 128")
    yield "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster"
    yield "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster"
    yield from make("membar.proxy", (".alias", ".async"))


def asynchronous():
    yield from make("cp.async", (".ca", ".cg"), ".shared", ("", ".L2::128B"), ".global [%r9], [%d9], 16")
    yield "cp.async.ca.shared.global [%r9], [%d9], 4"
    yield "cp.async.ca.shared.global [%r9], [%d9], 16, %r0"
    yield "cp.async.ca.shared.global [%r9], [%d9], 16, %p0"
    yield "cp.async.commit_group"
    yield "cp.async.wait_group 1"
    yield "cp.async.wait_all"
    yield from make("cp.async.mbarrier.arrive", ("", ".noinc"), (".b64 [%d9]", ".shared.b64 [%r9]",
                                                                 ".shared::cta.b64 [%r9]"))
    complete = ".mbarrier::complete_tx::bytes"
    for hint, extra in (("", ""), (".L2::cache_hint", ", %d8")):
        yield f"cp.async.bulk.shared::cluster.global{complete}{hint} [%r9], [%d9], %r0, [%r8]{extra}"
        yield f"cp.async.bulk.shared::cta.global{complete}{hint} [%r9], [%d9], %r0, [%r8]{extra}"
        yield (f"cp.async.bulk.shared::cluster.global{complete}.multicast::cluster{hint} "
               f"[%r9], [%d9], %r0, [%r8], %h0{extra}")
        yield f"cp.async.bulk.global.shared::cta.bulk_group{hint} [%d9], [%r9], %r0{extra}"
        yield f"cp.async.bulk.global.shared::cta.bulk_group{hint}.cp_mask [%d9], [%r9], %r0{extra}, %h0"
    yield f"cp.async.bulk.shared::cluster.shared::cta{complete} [%r9], [%r7], %r0, [%r8]"
    reductions = [(op, t) for op in ("and", "or", "xor") for t in ("b32", "b64")]
    reductions += [("add", t) for t in ("u32", "s32", "u64", "f32", "f64")]
    reductions += [(op, t) for op in ("inc", "dec") for t in ("u32",)]
    reductions += [(op, t) for op in ("min", "max") for t in ("u32", "s32", "u64", "s64", "f16", "bf16")]
    for op, t in reductions:
        yield f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{t} [%d9], [%r9], %r0"
        yield f"cp.reduce.async.bulk.shared::cluster.shared::cta{complete}.{op}.{t} [%r9], [%r7], %r0, [%r8]"
    yield from make("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz", (".f16", ".bf16"),
                    " [%d9], [%r9], %r0")
    yield "cp.async.bulk.prefetch.L2.global [%d9], %r0"
    yield from make("cp.async.bulk.wait_group", ("", ".read"), " 0")
    yield "cp.async.bulk.commit_group"
    for dims in range(1, 6):
        c = "{" + ", ".join(f"%r{i}" for i in range(dims)) + "}"
        o = "{" + ", ".join(f"%h{i}" for i in range(max(1, dims - 2))) + "}"
        for group in ("", ".cta_group::1", ".cta_group::2"):
            for cluster in ("shared::cluster", "shared::cta"):
                yield f"cp.async.bulk.tensor.{dims}d.{cluster}.global.tile{complete}{group} [%r9], [%d9, {c}], [%r8]"
        yield (f"cp.async.bulk.tensor.{dims}d.shared::cluster.global.tile{complete}.multicast::cluster.L2::cache_hint "
               f"[%r9], [%d9, {c}], [%r8], %h0, %d8")
        for mode in ("im2col", "im2col::w", "im2col::w::128"):
            yield (f"cp.async.bulk.tensor.{dims}d.shared::cluster.global.{mode}{complete} "
                   f"[%r9], [%d9, {c}], [%r8], {o}")
        yield f"cp.async.bulk.tensor.{dims}d.global.shared::cta.tile.bulk_group [%d9, {c}], [%r9]"
        yield f"cp.async.bulk.tensor.{dims}d.global.shared::cta.im2col_no_offs.bulk_group [%d9, {c}], [%r9]"
        yield f"cp.async.bulk.prefetch.tensor.{dims}d.L2.global.tile [%d9, {c}]"
        for op in ("add", "min", "max", "inc", "dec", "and", "or", "xor"):
            yield f"cp.reduce.async.bulk.tensor.{dims}d.global.shared::cta.{op}.tile.bulk_group [%d9, {c}], [%r9]"
    five = "{%r0, %r1, %r2, %r3, %r4}"
    yield f"cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4{complete} [%r9], [%d9, {five}], [%r8]"
    yield f"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%d9, {five}], [%r9]"
    for field, n in (("global_address", ".b64"), ("rank", ".b32"), ("elemtype", ".b32"), ("interleave_layout", ".b32"),
                     ("swizzle_mode", ".b32"), ("swizzle_atomicity", ".b32"), ("fill_mode", ".b32"),
                     ("box_dim", ".b32"), ("global_dim", ".b32"), ("global_stride", ".b64"),
                     ("element_stride", ".b32")):
        value = "%d0" if n == ".b64" else "1" if field in ("elemtype", "interleave_layout", "swizzle_mode",
                                                            "swizzle_atomicity", "fill_mode") else "%r0"
        ordinal = "0, " if field in ("box_dim", "global_dim", "global_stride", "element_stride") else ""
        yield f"tensormap.replace.tile.{field}.global.b1024{n} [%d9], {ordinal}{value}"
        yield f"tensormap.replace.tile.{field}.shared::cta.b1024{n} [%r9], {ordinal}{value}"
    yield ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
           "[%d9], [%r9], 128")
    for space, a in (("", "%d9"), (".shared", "%r9"), (".shared::cta", "%r9"), (".shared::cluster", "%r9")):
        yield f"mbarrier.init{space}.b64 [{a}], %r0"
        yield f"mbarrier.inval{space}.b64 [{a}]"
        for op in ("expect_tx", "complete_tx"):
            yield from make(f"mbarrier.{op}", ("", ".relaxed"), ("", ".cta", ".cluster"), f"{space}.b64 [{a}], %r0")
        for op in ("arrive", "arrive_drop"):
            for sem in ("", ".release", ".relaxed"):
                for scope in ("", ".cta", ".cluster"):
                    for state in ("%d0", "_"):
                        yield f"mbarrier.{op}{sem}{scope}{space}.b64 {state}, [{a}]"
                        yield f"mbarrier.{op}{sem}{scope}{space}.b64 {state}, [{a}], %r0"
                        yield f"mbarrier.{op}.expect_tx{sem}{scope}{space}.b64 {state}, [{a}], %r0"
            yield f"mbarrier.{op}.noComplete{space}.b64 %d0, [{a}], %r0"
        for op in ("test_wait", "try_wait"):
            for sem in ("", ".acquire", ".relaxed"):
                for scope in ("", ".cta", ".cluster"):
                    yield f"mbarrier.{op}{sem}{scope}{space}.b64 %p0, [{a}], %d0"
                    yield f"mbarrier.{op}.parity{sem}{scope}{space}.b64 %p0, [{a}], %r0"
                    if op == "try_wait":
                        yield f"mbarrier.{op}.parity{sem}{scope}{space}.b64 %p0, [{a}], %r0, %r1"
    yield "mbarrier.pending_count.b64 %r0, %d0"
    yield from make("clusterlaunchcontrol.try_cancel.async", ("", ".shared::cta"),
                    ".mbarrier::complete_tx::bytes", ("", ".multicast::cluster::all"), ".b128 [%r9], [%r8]")
    yield "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %q0"
    yield "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, %r1, %r2, %r3}, %q0"
    yield from make("clusterlaunchcontrol.query_cancel.get_first_ctaid", ("::x", "::y", "::z"), ".b32.b128 %r0, %q0")


def control():
    yield "bra behind"
    yield "bra.uni behind"
    yield "@%p0 bra behind"
    yield "brx.idx %r0, targets"
    yield "brx.idx.uni %r0, targets"
    yield "call (back), function, (given)"
    yield "call.uni (back), function, (given)"
    yield "call (back), %d0, (given), prototype"
    yield "call (back), %d0, (given), functions"
    yield "ret"
    yield "ret.uni"
    yield "exit"
    yield "trap"
    yield "brkpt"
    yield "nanosleep.u32 %r0"
    yield "pmevent 3"
    yield "pmevent.mask 3"
    yield from make("alloca", (".u64 %d0, %d1", ".u64 %d0, %d1, 32", ".u32 %r0, %r1"))
    yield from make("stacksave", (".u64 %d0", ".u32 %r0"))
    yield from make("stackrestore", (".u64 %d0", ".u32 %r0"))
    yield from make("griddepcontrol", (".wait", ".launch_dependents"))
    yield from make("setmaxnreg", (".inc", ".dec"), ".sync.aligned.u32 64")
    yield "istypep.texref %p0, %d0"


def matrix():
    yield from make("ldmatrix.sync.aligned.m8n8", (".x1", ".x2", ".x4"), ("", ".trans"), (".shared", ".shared::cta"),
                    ".b16 {%r0}, [%r9]")
    yield "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%r9]"
    yield "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r0, %r1}, [%r9]"
    yield "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r9]"
    yield from make("ldmatrix.sync.aligned", (".m16n16.x1.trans", ".m8n16.x2"), ".shared.b8x16",
                    (".b6x16_p32", ".b4x16_p64"), " {%r0, %r1}, [%r9]")
    yield "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r9], {%r0, %r1, %r2, %r3}"
    yield "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r9], {%r0}"
    yield "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r9], {%r0, %r1}"
    yield "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1"
    c4 = vector("r", 4)
    for d, ab in (("f32", "f16"), ("f32", "bf16"), ("f32", "tf32"), ("f32", "e4m3"), ("s32", "s8"), ("s32", "u4"),
                  ("s32", "b1")):
        shape = {"f16": "m16n8k16", "bf16": "m16n8k16", "tf32": "m16n8k8", "e4m3": "m16n8k32", "s8": "m16n8k32",
                 "u4": "m16n8k64", "b1": "m16n8k256"}[ab]
        extra = ".xor.popc" if ab == "b1" else ""
        yield f"mma.sync.aligned.{shape}.row.col.{d}.{ab}.{ab}.{d}{extra} {c4}, {c4}, {{%r0, %r1}}, {c4}"
    yield f"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%d0, %d1}}, {{%d2}}, {{%d3}}, {{%d0, %d1}}"
    yield ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
           f"{c4}, {c4}, {c4}, {c4}, %r5, 0x0")
    # Registers of A, B and of a C or D of 32 bits.
    for shape, of_type in (("m16n16k16", {"f16": (8, 8), "bf16": (4, 4), "u8": (2, 2), "s8": (2, 2)}),
                           ("m32n8k16", {"f16": (8, 8), "bf16": (8, 2), "u8": (4, 1), "s8": (4, 1)}),
                           ("m8n32k16", {"f16": (8, 8), "bf16": (2, 8), "u8": (1, 4), "s8": (1, 4)}),
                           ("m16n16k8", {"tf32": (4, 4)}), ("m8n8k4", {"f64": (1, 1)}),
                           ("m8n8k32", {"u4": (1, 1), "s4": (1, 1)}), ("m8n8k128", {"b1": (1, 1)})):
        for ab, (a, b) in of_type.items():
            sums = {"f64": "f64", "f16": "f32", "bf16": "f32", "tf32": "f32"}.get(ab, "s32")
            letter = "d" if ab == "f64" else "r"
            of_d = vector(letter, 2 if shape.startswith("m8n8") else 8)
            operands = f"{of_d}, {vector(letter, a)}, {vector(letter, b)}, {of_d}"
            layouts = ("row", "col") if ab not in ("u4", "s4", "b1") else ()
            for layout in layouts or ("row",):
                yield f"wmma.load.a.sync.aligned.{layout}.{shape}.global.{ab} {vector(letter, a)}, [%d9], %r9"
            for layout in layouts or ("col",):
                yield f"wmma.load.b.sync.aligned.{layout}.{shape}.shared.{ab} {vector(letter, b)}, [%r9]"
            yield f"wmma.load.c.sync.aligned.row.{shape}.{sums} {of_d}, [%d9], 64"
            yield f"wmma.store.d.sync.aligned.col.{shape}.global.{sums} [%d9], {of_d}"
            if ab == "f16":
                half = vector("r", 4)
                yield f"wmma.load.c.sync.aligned.row.{shape}.global.f16 {half}, [%d9]"
                yield f"wmma.store.d.sync.aligned.row.{shape}.shared.f16 [%r9], {half}"
                for d, of_that in (("f16", half), ("f32", of_d)):
                    for c, of_c in (("f16", half), ("f32", of_d)):
                        yield (f"wmma.mma.sync.aligned.row.col.{shape}.{d}.{c} "
                               f"{of_that}, {vector('r', a)}, {vector('r', b)}, {of_c}")
            elif ab == "b1":
                for operation in ("and", "xor"):
                    yield f"wmma.mma.{operation}.popc.sync.aligned.row.col.{shape}.s32.b1.b1.s32 {operands}"
            else:
                yield f"wmma.mma.sync.aligned.row.col.{shape}.{sums}.{ab}.{ab}.{sums} {operands}"
                if sums == "s32":
                    yield f"wmma.mma.sync.aligned.row.col.{shape}.s32.{ab}.{ab}.s32.satfinite {operands}"
                if ab == "f64":
                    yield f"wmma.mma.sync.aligned.row.col.{shape}.rz.f64.f64.f64.f64 {operands}"
    for kind in ("f16", "tf32", "f8f6f4", "i8"):
        yield from make("tcgen05.mma", (".cta_group::1", ".cta_group::2"), f".kind::{kind} [%r0], %d0, %d1, %r1, %p0")
        yield f"tcgen05.mma.cta_group::1.kind::{kind} [%r0], [%r2], %d1, %r1, %p0"
        yield f"tcgen05.mma.ws.cta_group::1.kind::{kind} [%r0], %d0, %d1, %r1, %p0"
        yield f"tcgen05.mma.sp.cta_group::1.kind::{kind} [%r0], %d0, %d1, [%r3], %r1, %p0"
    for kind in ("mxf8f6f4", "mxf4", "mxf4nvf4"):
        scale = {"mxf8f6f4": "scale_vec::1X", "mxf4": "scale_vec::2X", "mxf4nvf4": "scale_vec::4X"}[kind]
        yield (f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale.{scale} "
               "[%r0], %d0, %d1, %r1, [%r2], [%r3], %p0")
    yield from make("tcgen05.alloc", (".cta_group::1", ".cta_group::2"), ".sync.aligned.shared::cta.b32 [%r9], 32")
    yield from make("tcgen05.dealloc", (".cta_group::1", ".cta_group::2"), ".sync.aligned.b32 %r0, 32")
    yield from make("tcgen05.relinquish_alloc_permit", (".cta_group::1", ".cta_group::2"), ".sync.aligned")
    for shape, each in (("32x32b", 1), ("16x64b", 1), ("16x128b", 2), ("16x256b", 4)):
        for x in (1, 2, 4, 8, 16, 32):
            if each * x > 8:
                continue
            v = vector("r", each * x)
            yield from make(f"tcgen05.ld.sync.aligned.{shape}.x{x}", ("", ".pack::16b"), f".b32 {v}, [%r9]")
            yield from make(f"tcgen05.st.sync.aligned.{shape}.x{x}", ("", ".unpack::16b"), f".b32 [%r9], {v}")
    yield "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r0}, [%r9], 2"
    yield "tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r9], 2, {%r0}"
    yield "tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%r0, %r1}, %r2, [%r9]"
    yield from make("tcgen05.wait", ("::ld", "::st"), ".sync.aligned")
    for shape in ("128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23",
                  "32x128b.warpx4"):
        yield from make(f"tcgen05.cp.cta_group::1.{shape}", ("", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"), " [%r0], %d0")
    yield "tcgen05.shift.cta_group::1.down [%r0]"
    yield from make("tcgen05.commit", (".cta_group::1", ".cta_group::2"),
                    ".mbarrier::arrive::one.shared::cluster.b64 [%r9]")
    yield ("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r9], %h0")
    yield from make("tcgen05.fence", ("::before_thread_sync", "::after_thread_sync"))


def graphics():
    yield "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r4, %r5}]"
    yield "tld4.r.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r4, %r5}]"
    yield "txq.width.b32 %r0, [%d0]"
    yield "suld.b.2d.b32.trap {%r0}, [%d0, {%r4, %r5}]"
    yield "sust.b.2d.b32.trap [%d0, {%r4, %r5}], {%r0}"
    yield "sured.b.add.2d.u32.trap [%d0, {%r4, %r5}], %r0"
    yield "suq.width.b32 %r0, [%d0]"
    yield "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r0, [%d9]"
    yield "multimem.st.relaxed.gpu.global.u32 [%d9], %r0"
    yield "multimem.red.relaxed.gpu.global.add.u32 [%d9], %r0"
    yield "multimem.cp.async.bulk.global.shared::cta.bulk_group [%d9], [%r9], %r0"
    yield "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d9], [%r9], %r0"


def video():
    for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for d, a, b in itertools.product(("u32", "s32"), repeat=3):
            yield from make(op, f".{d}.{a}.{b}", SAT, " %r0, %r1.b0, %r2.h1")
            yield from make(op, f".{d}.{a}.{b}", (".add", ".min", ".max"), " %r0, %r1, %r2, %r3")
    for op in ("vshl", "vshr"):
        yield from make(op, (".u32.u32.u32", ".s32.s32.u32"), SAT, (".clamp", ".wrap"), " %r0, %r1, %r2")
    yield from make("vmad.s32.s32.u32", SAT, ("", ".shr7", ".shr15"), " %r0, %r1, -%r2, %r3")
    yield from make("vset", (".u32.u32", ".s32.s32"), (".eq", ".lt", ".ge"), " %r0, %r1, %r2")
    for op in ("vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vadd4", "vsub4", "vavrg4", "vabsdiff4",
               "vmin4", "vmax4"):
        yield from make(op, (".u32.u32.u32", ".s32.s32.s32"), SAT, " %r0, %r1, %r2, %r3")
    yield from make(("vset2", "vset4"), ".u32.u32.lt %r0, %r1, %r2, %r3")


SECTIONS = (
    ("Integer arithmetic", integer), ("Floating point", real), ("Comparison and selection", comparison),
    ("Logic and shifts", logic), ("Moving values and addresses", moves), ("Conversion", conversions),
    ("Loads, stores and hints", memory), ("Atomics", atomics), ("Lanes of a warp", warp),
    ("Barriers and fences", barriers), ("Asynchronous copies and mbarriers", asynchronous),
    ("Control flow, calls and the stack", control), ("Matrices and tensor memory", matrix),
    ("Textures, surfaces, multimem", graphics), ("Video", video),
)


def all_forms():
    """(section, line) of every spelling, each once."""
    seen = set()
    for name, forms in SECTIONS:
        for line in forms():
            if line not in seen:
                seen.add(line)
                yield name, line


if __name__ == "__main__":
    print(sum(1 for _ in all_forms()), "spellings")
