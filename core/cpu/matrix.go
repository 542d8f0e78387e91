package cpu

import (
	"encoding/binary"

	"calla/core/backend"
	"calla/core/tensor"
)

// groupSize is the length of a quantisation group.
const groupSize = 64

// Matrix is an affine-quantised matrix as a checkpoint stores it, bytes at any
// alignment: value = scale × code + bias.
//
//	Codes   [Out, In×Bits/8]  codes of Bits bits, the lowest bits first
//	Scales  [Out, In/64]      bfloat16
//	Biases  [Out, In/64]      bfloat16
type Matrix struct {
	Codes, Scales, Biases []byte
	Out, In               int
	Bits                  int // 4 or 8
}

// stack is matrices of one shape, one an expert, one behind the other.
type stack struct {
	all Matrix // Out counts the rows of every matrix
	out int    // rows of one
}

func newMatrix(q backend.Quantised) Matrix {
	return Matrix{
		Codes:  q.Weight.Bytes(),
		Scales: q.Scales.Bytes(),
		Biases: q.Biases.Bytes(),
		Out:    q.Experts * q.Out,
		In:     q.In,
		Bits:   q.Bits,
	}
}

func newStack(q backend.Quantised) stack { return stack{newMatrix(q), q.Out} }

// expert returns matrix e.
func (s stack) expert(e int) Matrix {
	codes, params := s.all.codeStride()*s.out, s.all.In/groupSize*2*s.out
	return Matrix{
		Codes:  s.all.Codes[e*codes : (e+1)*codes],
		Scales: s.all.Scales[e*params : (e+1)*params],
		Biases: s.all.Biases[e*params : (e+1)*params],
		Out:    s.out,
		In:     s.all.In,
		Bits:   s.all.Bits,
	}
}

// codeStride returns the bytes from one row's codes to the next.
func (m Matrix) codeStride() int { return m.In * m.Bits / 8 }

// params returns scale and bias of a group, counted through all rows.
func (m Matrix) params(group int) (scale, bias float32) {
	return tensor.FromBF16(binary.LittleEndian.Uint16(m.Scales[2*group:])),
		tensor.FromBF16(binary.LittleEndian.Uint16(m.Biases[2*group:]))
}

// dequantise sets y to the values of a row from its column from on. Both ends
// lie between groups.
func (m Matrix) dequantise(y []float32, row, from int) {
	group := (row*m.In + from) / groupSize
	bytes := groupSize * m.Bits / 8
	for len(y) > 0 {
		scale, bias := m.params(group)
		codes := m.Codes[group*bytes:][:bytes]
		if m.Bits == 4 {
			dequantise4((*[64]float32)(y), (*[32]byte)(codes), scale, bias)
		} else {
			dequantise8((*[64]float32)(y), (*[64]byte)(codes), scale, bias)
		}
		y, group = y[groupSize:], group+1
	}
}

func dequantise4(y *[64]float32, codes *[32]byte, scale, bias float32) {
	var values [16]float32
	for c := range values {
		values[c] = scale*float32(c) + bias
	}
	for i, b := range codes {
		y[2*i] = values[b&15]
		y[2*i+1] = values[b>>4]
	}
}

func dequantise8(y *[64]float32, codes *[64]byte, scale, bias float32) {
	for i, b := range codes {
		y[i] = scale*float32(b) + bias
	}
}
