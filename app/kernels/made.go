package kernels

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"

	"calla/core/checkpoint"
	"calla/core/tensor"
)

// PublishedSizes is a layer of each kind at the published model's sizes, and its
// whole vocabulary.
var PublishedSizes = func() checkpoint.Config {
	c := checkpoint.Published
	c.Layers, c.FullAttentionInterval = 2, 2
	return c
}()

// Made is a model of a configuration whose weights were drawn by lot, the same
// each time. It says nothing, but its kernels have all the work of the real one's;
// at the published sizes it takes 1.5 GB.
func Made(c checkpoint.Config) *checkpoint.Checkpoint {
	lot := rand.NewPCG(7, 11)
	return checkpoint.Made("made", c, func(t checkpoint.Tensor, data []byte) {
		bits := t.Part.Bits()
		switch {
		case bits > 0 && strings.HasSuffix(t.Name, ".weight"):
			for ; len(data) >= 8; data = data[8:] {
				binary.LittleEndian.PutUint64(data, lot.Uint64())
			}
			for i := range data {
				data[i] = byte(lot.Uint64())
			}
		case bits > 0:
			shape := t.Part.Shape(c)
			levels := float64(int(1)<<bits - 1)
			// Products with values of spread 1 have spread 1.
			spread := math.Sqrt(12/float64(shape[len(shape)-1])) / levels
			biases := strings.HasSuffix(t.Name, ".biases")
			fillBF16(data, func(i int) float64 {
				scale := spread * factor(i)
				if biases {
					return -scale * levels / 2
				}
				return scale
			})
		default:
			fillBF16(data, func(i int) float64 { return plain(t.Part, i) })
		}
	})
}

// factor varies scales, in size and sign. A bias has the scale of its place.
func factor(i int) float64 {
	h := uint32(i) * 2654435761
	f := 0.75 + float64(h>>8&0xff)/512
	if h>>31 == 1 {
		return -f
	}
	return f
}

// plain is a value of a tensor that is not quantised.
func plain(p checkpoint.Part, i int) float64 {
	switch p {
	case checkpoint.DeltaALog, checkpoint.DeltaDT:
		return float64(i%5)/4 - 0.5
	case checkpoint.DeltaConv:
		return 0.6 - 0.2*float64(i%4)
	}
	return 1 + 0.25*factor(i)/2 // a norm's
}

func fillBF16(data []byte, value func(i int) float64) {
	for i := range len(data) / 2 {
		binary.LittleEndian.PutUint16(data[2*i:], tensor.ToBF16(float32(value(i))))
	}
}
