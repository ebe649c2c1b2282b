from compiler.passes.inline_branches import inline_branches

MODEL = """
agraph (float[2] x, bool c) => (float[2] y, float[2] z) <bool yes = {1}, float w = {3}> {
    a = Abs(x)
    y, b = If(yes) <
        then_branch = g1 () => (float[2] t, float[2] u) <float w = {2}> {
            t = Mul(a, w)
            u = If(c) <
                then_branch = g3 () => (float[2] p) { p = Neg(t) },
                else_branch = g4 () => (float[2] q) { q = Exp(t) }
            >
        },
        else_branch = g2 () => (float[2] e, float[2] f) { e = Exp(x)  f = Neg(x) }
    >
    z = Add(b, w)
}
"""


def test_the_branch_that_is_taken(check_pass):
    report = check_pass(
        inline_branches,
        MODEL,
        """
        input x: float[2]
        input c: bool[]
        constant yes = bool[] {True}
        constant w = float[] {3}
        constant w_1 = float[] {2}
        a = Abs(x)
        y = Mul(a, w_1)
        u = If(c)
          then_branch:
            p = Neg(y)
            return p
          else_branch:
            q = Exp(y)
            return q
        z = Add(u, w)
        return y, z
        """,
    )
    assert len(report.fired) == 1


def test_a_branch_that_computes_nothing(check_pass):
    text = MODEL.replace("bool yes = {1}", "bool yes = {0}").replace("e = Exp(x)", "e = Identity(a)")
    report = check_pass(inline_branches, text)
    assert len(report.fired) == 1


def test_unknown_conditions_stay(check_pass):
    text = """
    agraph (float[2] x, bool c) => (float[2] y) {
        y = If(c) <
            then_branch = g1 () => (float[2] t) { t = Neg(x) },
            else_branch = g2 () => (float[2] e) { e = Exp(x) }
        >
    }
    """
    assert not check_pass(inline_branches, text).changed


def test_names_that_two_branches_share(check_pass):
    branch = "then_branch = g1 () => (float[2] y) <float w = {2}> { t = Mul(x, w)  y = Exp(t) }"
    other = "else_branch = g2 () => (float[2] n) { n = Neg(x) }"
    check_pass(
        inline_branches,
        f"""
        agraph (float[2] x) => (float[2] y, float[2] z) <bool yes = {{1}}> {{
            y = If(yes) < {branch}, {other} >
            z = If(yes) < {branch}, {other} >
        }}
        """,
        """
        input x: float[2]
        constant yes = bool[] {True}
        constant w = float[] {2}
        constant w_1 = float[] {2}
        t = Mul(x, w)
        y = Exp(t)
        t_1 = Mul(x, w_1)
        z = Exp(t_1)
        return y, z
        """,
        same_results=None,
    )
