package bench

import (
	"math"
	"testing"
)

// The expected values are numpy's (2.4.6), from rows scaled by 1/y:
//
//	A = np.stack([term(x) for term in terms], 1) / y[:, None]; s = abs(A).max(0)
//	w = np.linalg.lstsq(A / s, np.ones(len(y)), rcond=None)[0]
//	r = A / s @ w - 1; v = r @ r / (len(y) - 2)
//	w / s, np.sqrt(np.diag(v * np.linalg.inv((A / s).T @ (A / s)))) / s, abs(r).max()
func TestFit(t *testing.T) {
	for _, tt := range []struct {
		name string
		fit  func(x, y []float64) (Fit, bool)
		x, y []float64
		want Fit
	}{
		{
			"decode", fitDecode,
			[]float64{256, 1024, 4096, 16384, 65536}, []float64{.0052, .0055, .0056, .0063, .0090},
			Fit{Coefficient{0.0053330230405641355, 6.350214577909758e-05}, Coefficient{5.641734482089873e-08, 3.0524848635724606e-09}, 0.02835882323813177, 5},
		},
		{
			"prefill", fitPrefill,
			[]float64{256, 512, 1024, 2048, 4096, 131072}, []float64{.11, .21, .43, .90, 1.85, 190.},
			Fit{Coefficient{0.0004172878601925146, 4.0225416244076704e-06}, Coefficient{7.882476305810413e-09, 2.3208215024269068e-10}, 0.02722727755846588, 6},
		},
		{"points on a line", fitDecode, []float64{1, 2, 3}, []float64{3, 5, 7}, Fit{Coefficient{1, 0}, Coefficient{2, 0}, 0, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := tt.fit(tt.x, tt.y)
			if !ok || got.Points != tt.want.Points {
				t.Fatalf("fit = %+v, %t, want %+v", got, ok, tt.want)
			}
			for _, c := range []struct {
				name      string
				got, want float64
				unit      float64
			}{
				{"first", got.First.Value, tt.want.First.Value, tt.want.First.Value},
				{"its error", got.First.Error, tt.want.First.Error, tt.want.First.Value},
				{"second", got.Second.Value, tt.want.Second.Value, tt.want.Second.Value},
				{"its error", got.Second.Error, tt.want.Second.Error, tt.want.Second.Value},
				{"worst", got.Worst, tt.want.Worst, 1},
			} {
				if math.Abs(c.got-c.want) > 1e-7*c.unit {
					t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
				}
			}
		})
	}
}

func TestFitRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		x, y []float64
	}{
		{"two points", []float64{1, 2}, []float64{1, 2}},
		{"three of one length", []float64{5, 5, 5}, []float64{1, 2, 3}},
		{"no points", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if f, ok := fitDecode(tt.x, tt.y); ok {
				t.Errorf("fitDecode = %+v, want none", f)
			}
			if f, ok := fitPrefill(tt.x, tt.y); ok {
				t.Errorf("fitPrefill = %+v, want none", f)
			}
		})
	}
}

// The medians are numpy's.
func TestSummarise(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   Summary
	}{
		{"odd", []float64{5, 1, 4, 2, 3}, Summary{3, 1, 5}},
		{"even", []float64{2, 8, 4, 6}, Summary{5, 2, 8}},
		{"one", []float64{7}, Summary{7, 7, 7}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := summarise(tt.values); got != tt.want {
				t.Errorf("summarise(%v) = %v, want %v", tt.values, got, tt.want)
			}
		})
	}
}
