package kernels

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"calla/core/backend"
)

// place is where values were seen: in a phase, in a layer (-1 for the whole
// model's), under a name.
type place struct {
	phase backend.Phase
	layer int
	name  string
}

// rows are values of one place, of all calls of the phase.
type rows struct {
	width int
	all   []float32
}

type values map[place]*rows

// recorder keeps what it is shown.
type recorder struct {
	phase  backend.Phase
	values values
}

func newRecorder() *recorder { return &recorder{values: values{}} }

func (r *recorder) enter(p backend.Phase) { r.phase = p }

func (r *recorder) observe(layer int, name string, width int, v []float32) {
	at := place{r.phase, layer, name}
	if r.values[at] == nil {
		r.values[at] = &rows{width: width}
	}
	r.values[at].all = append(r.values[at].all, v...)
}

// Check is one comparison of the GPU with the processor.
type Check struct {
	Phase string `json:"phase"`
	Layer int    `json:"layer"` // -1: of the whole model
	Value string `json:"value"`
	Rows  int    `json:"rows"`
	// Off is how far the values are off: root of mean square, of their own. Column
	// is that of the worst column, over all rows; of chosen experts both are the
	// share that differs.
	Off    float64 `json:"off"`
	Column float64 `json:"worst_column"`
	OK     bool    `json:"ok"`
}

// Limits of a check. Both sides round to bfloat16 at the same points, so that they
// are off by some thousandths after a few layers; a choice of experts that hangs by
// a hair changes a row. A wrong column is off by its whole size, in every row.
const (
	mostOff     = 0.03
	mostColumn  = 0.25
	mostExperts = 0.05
)

const chosenExperts = "router.experts"

// compare sets what the GPU has beside what the processor has.
func compare(got, want values) []Check {
	var out []Check
	for at, g := range got {
		if w := want[at]; w != nil {
			out = append(out, check(at, g, w))
		}
	}
	slices.SortFunc(out, func(a, b Check) int {
		return cmp.Or(-cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Value, b.Value))
	})
	return out
}

func check(at place, got, want *rows) Check {
	c := Check{Phase: at.phase.String(), Layer: at.layer, Value: at.name, Rows: len(got.all) / got.width}
	switch {
	case len(got.all) != len(want.all):
		c.Off, c.Column = 1, 1
	case at.name == chosenExperts:
		c.Off = differing(got, want)
		c.Column, c.OK = c.Off, c.Off <= mostExperts
	default:
		c.Off, c.Column = off(got, want)
		// Negated, so that not-a-number fails.
		c.OK = !(!(c.Off <= mostOff) || !(c.Column <= mostColumn))
		if math.IsNaN(c.Off) || math.IsNaN(c.Column) { // JSON has no word for it
			c.Off, c.Column = math.MaxFloat32, math.MaxFloat32
		}
	}
	return c
}

// differing returns the share of rows' choices that the other has not made.
func differing(got, want *rows) float64 {
	n := 0
	for at := 0; at < len(got.all); at += got.width {
		theirs := want.all[at : at+got.width]
		for _, e := range got.all[at : at+got.width] {
			if !slices.Contains(theirs, e) {
				n++
			}
		}
	}
	return float64(n) / float64(len(got.all))
}

// off returns the difference of all values and of the worst column, relative to
// all.
func off(got, want *rows) (all, column float64) {
	columns := make([]float64, got.width)
	var size, sum float64
	for i, w := range want.all {
		d := float64(got.all[i]) - float64(w)
		size += float64(w) * float64(w)
		sum += d * d
		columns[i%got.width] += d * d
	}
	if size == 0 {
		size = 1
	}
	// A column has a width-th of the values.
	return math.Sqrt(sum / size), math.Sqrt(slices.Max(columns) * float64(got.width) / size)
}

func (c Check) String() string {
	where := fmt.Sprintf("layer %d", c.Layer)
	if c.Layer < 0 {
		where = "model"
	}
	return fmt.Sprintf("%s, %s, %s: off by %.3f, worst column %.3f", c.Phase, where, c.Value, c.Off, c.Column)
}
