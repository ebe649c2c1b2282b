from compiler.ir.text import graph_text
from compiler.passes.fold_biases import fold_biases
from compiler.passes.infer_shapes import infer_shapes


def test_biases_are_computed_before_weights_are(check_pass, parse, evaluate):
    model = parse(
        """
        agraph (float[1, 2, 3, 3] x) => (float[1, 2, 3, 3] y)
        <int32[2] c = {1, 2}, int32[2, 2, 1, 1] v = {1, 2, 3, 4}, float[2] two = {2, 2}, int32[2] i = {5, 6},
         float s = {0.5}>
        {
            a = Cast<to = 1>(c)
            b = Mul(a, two)
            w = Cast<to = 1>(v)
            z = Conv(x, w, b)
            d = DequantizeLinear(i, s)
            y = Conv(z, w, d)
        }
        """
    )
    infer_shapes.run(model)
    check_pass(fold_biases(evaluate), model, same_results=None)
    text = graph_text(model.graph)
    assert "constant b = float[2] {2, 4}" in text
    assert "w = Cast" in text and "d = DequantizeLinear" in text
