package checkpoint

import "bytes"

// Made returns a checkpoint of a configuration that lies in memory alone, for
// measurements at sizes of which no files are at hand. Fill writes the bytes of
// each tensor, in the first of its element types.
func Made(name string, c Config, fill func(t Tensor, data []byte)) *Checkpoint {
	out := &Checkpoint{src: Memory(name, nil), config: c, weights: map[string]Weight{}}
	for t := range c.Tensors() {
		n, _ := t.Shape.Elements()
		data := make([]byte, n*int64(t.DTypes[0].Size()))
		fill(t, data)
		out.weights[t.Name] = Weight{
			Name: t.Name, DType: t.DTypes[0], Shape: t.Shape, Shard: name, Size: int64(len(data)),
			file: memoryFile{bytes.NewReader(data), data},
		}
		out.bytes += int64(len(data))
	}
	return out
}
