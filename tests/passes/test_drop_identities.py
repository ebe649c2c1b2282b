from compiler.passes.drop_identities import drop_identities


def test_identities_and_casts_to_the_same_type(check_pass):
    report = check_pass(
        drop_identities,
        """
        agraph (float[N] x) => (float[N] y) {
            a = Identity(x)
            b = Cast<to=1>(a)
            c = Relu(b)
            y = Identity(c)
        }
        """,
        """
        input x: float[N]
        y = Relu(x)
        return y
        """,
    )
    assert [fired.rule for fired in report.fired] == ["DropIdentity", "DropCast", "DropIdentity"]


def test_an_output_keeps_its_name(check_pass):
    report = check_pass(
        drop_identities,
        """
        agraph (float[N] x) => (float[N] y, float[N] a, float[N] b) {
            y = Identity(x)
            a = Relu(x)
            b = Identity(a)
        }
        """,
        """
        input x: float[N]
        y = Identity(x)
        a = Relu(x)
        b = Identity(a)
        return y, a, b
        """,
    )
    assert [missed.reason for missed in report.missed] == [
        "the output 'y' needs a name of its own",
        "the output 'b' needs a name of its own",
    ]


def test_inside_nested_graphs(check_pass):
    check_pass(
        drop_identities,
        """
        agraph (float[N] x, bool c) => (float[N] y) {
            y = If(c) <
                then_branch = g1 () => (float[N] t) { a = Identity(x)  t = Relu(a) },
                else_branch = g2 () => (float[N] e) { e = Identity(x) }
            >
        }
        """,
        """
        input x: float[N]
        input c: bool[]
        y = If(c)
          then_branch:
            t = Relu(x)
            return t
          else_branch:
            e = Identity(x)
            return e
        return y
        """,
    )


def test_other_casts_stay(check_pass):
    report = check_pass(drop_identities, "agraph (float[N] x) => (int64[N] y) { y = Cast<to=7>(x) }")
    assert [missed.reason for missed in report.missed] == ["it casts FLOAT to INT64"]


def test_a_cast_to_the_type_of_another_value(check_pass):
    check_pass(
        drop_identities,
        """
        agraph (float[N] x, float16[M] like) => (float16[N] y) {
            a = CastLike<saturate=1>(x, like)
            y = Neg(a)
        }
        """,
        """
        input x: float[N]
        input like: float16[M]
        val_0 = Cast(x, saturate=1, to=10)
        y = Neg(val_0)
        return y
        """,
        opset=19,
    )
