"""Operators between DequantizeLinear and QuantizeLinear, rewritten to compute on 8-bit codes."""
