package engine

import (
	"context"
	"math"
	"slices"
	"testing"

	"calla/core/backend"
	"calla/core/backend/backendtest"
	"calla/core/model"
)

func findings(t *testing.T, e *Engine, prompt []int32) []Finding {
	t.Helper()
	var out []Finding
	if err := e.Audit(context.Background(), prompt, func(f Finding) { out = append(out, f) }); err != nil {
		t.Fatal(err)
	}
	return out
}

func auditPrompt() []int32 {
	return join(turn(0, 700), turn(1, 30), turn(2, 1200), turn(3, 5), open)
}

func TestAuditOfAnExactDevice(t *testing.T) {
	fs := findings(t, start(t, &backendtest.Device{}, testOptions()), auditPrompt())
	if want := 3 + 4*(1+4) + 4; len(fs) != want {
		t.Errorf("%d findings, want %d: three call sizes, in each of four one cut at four segment starts and one from each of them, and four branches", len(fs), want)
	}
	for _, f := range fs {
		if !f.Equal {
			t.Errorf("%s differs at step %d, logit %d", f.Way, f.Step, f.Logit)
		}
	}
}

// The audit must see one reduction whose last bit depends on the call.
func TestAuditSeesAPerturbedReduction(t *testing.T) {
	d := &backendtest.Device{}
	rows := 0
	d.Step = func(c backend.Call) error { rows = len(c.Tokens); return nil }
	d.Logits = func(_ []int32, logits []float32) {
		if rows == 64 {
			logits[200] = math.Nextafter32(logits[200], 2)
		}
	}
	prompt := join(turn(0, 700), turn(1, 500)[:128]) // calls of 64 end with one of 64
	fs := findings(t, start(t, d, testOptions()), prompt)
	if !slices.ContainsFunc(fs, func(f Finding) bool { return !f.Equal && f.Logit == 200 }) {
		t.Errorf("no finding tells of the perturbed logit: %+v", fs)
	}
}

// lastRowByDecode evaluates the last row of each prefill call that has a head
// by the decode path, as an engine might be tempted to.
type lastRowByDecode struct{ backend.Weights }

func (w lastRowByDecode) Begin(s backend.State, c backend.Call) (backend.Pass, error) {
	if n := len(c.Tokens); c.Phase == backend.Prefill && n > 1 && n < 200 {
		p, err := w.Weights.Begin(s, backend.Call{Phase: c.Phase, Tokens: c.Tokens[:n-1], Segments: c.Segments})
		if err != nil {
			return nil, err
		}
		if _, err := p.Commit(); err != nil {
			return nil, err
		}
		c = backend.Call{Phase: backend.Decode, Tokens: c.Tokens[n-1:]}
	}
	return w.Weights.Begin(s, c)
}

func TestAuditSeesTheDecodePath(t *testing.T) {
	d := &backendtest.Device{Vocab: vocab}
	e, err := New(func(ctx context.Context, p func(done, total int64)) (*model.Model, func() error, error) {
		w, err := d.Load(ctx, nil, p)
		if err != nil {
			return nil, nil, err
		}
		m := model.New(d.Config(), lastRowByDecode{w})
		return m, m.Close, nil
	}, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	fs := findings(t, e, auditPrompt())
	if !slices.ContainsFunc(fs, func(f Finding) bool { return !f.Equal }) {
		t.Error("prompt rows that went through decode were not seen")
	}
}
