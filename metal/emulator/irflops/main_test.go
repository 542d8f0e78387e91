package main

import (
	"strings"
	"testing"
)

func TestFlops(t *testing.T) {
	for _, tt := range []struct {
		line string
		want int
	}{
		{"  %3 = fadd float %1, %2", 1},
		{"  %3 = fmul contract float %1, 0x3FE0000000000000, !dbg !7", 1},
		{"  %3 = fsub reassoc nnan <4 x float> %1, %2", 4},
		{"  %3 = fdiv float 1.000000e+00, %2", 1},
		{"  %3 = tail call float @llvm.fmuladd.f32(float %1, float %2, float %0)", 2},
		{"  %3 = call noundef <2 x float> @llvm.fma.v2f32(<2 x float> %1, <2 x float> %2, <2 x float> %0)", 4},
		{"  %3 = fneg float %1", 0},
		{"  %3 = add i32 %1, %2", 0},
		{"  %3 = fpext bfloat %1 to float", 0},
		{"  %3 = fcmp ogt float %1, %2", 0},
		{"  %3 = load float, ptr %1", 0},
		{"declare float @llvm.fmuladd.f32(float, float, float)", 0},
	} {
		if got := flops(tt.line); got != tt.want {
			t.Errorf("%s: %d operations, want %d", tt.line, got, tt.want)
		}
	}
}

// TestCount adds the sums in blocks with arithmetic alone, behind what must come
// first in a block.
func TestCount(t *testing.T) {
	const in = `define void @f(float %0) {
  br label %2

2:                                                ; preds = %1, %2
  %3 = phi float [ 0.0, %1 ], [ %5, %2 ]
  %4 = fmul float %3, %0
  %5 = fadd float %4, %0
  br i1 true, label %2, label %6

6:
  ret void
}
`
	const want = `define void @f(float %0) {
  br label %2

2:                                                ; preds = %1, %2
  %3 = phi float [ 0.0, %1 ], [ %5, %2 ]
  %flops.1 = load i64, ptr @msl_flops
  %flops.more.1 = add i64 %flops.1, 2
  store i64 %flops.more.1, ptr @msl_flops
  %4 = fmul float %3, %0
  %5 = fadd float %4, %0
  br i1 true, label %2, label %6

6:
  ret void
}
@msl_flops = external global i64
`
	var out strings.Builder
	if err := count(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got:\n%s", out.String())
	}
}
