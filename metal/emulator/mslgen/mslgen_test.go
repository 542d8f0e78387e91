package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What Apple's compiler rejects must be rejected here, by mslgen or by the type
// check, and with a message that says why.
func TestRejects(t *testing.T) {
	const head = "#include <metal_stdlib>\nusing namespace metal;\n"
	in := func(body string) string {
		return "kernel void k(device float* x [[buffer(0)]], constant float& c [[buffer(1)]], uint t [[thread_position_in_grid]]) {\n" + body + "\n}\n"
	}
	cases := []struct{ name, src, want string }{
		{"clean", in("x[t] = c;"), ""},
		{"clean helper", "struct P { float a; };\ninline float f(device const float* p, P q) { P r = q; return p[0] + r.a; }\n" + in("P q; q.a = c; x[t] = f(x, q);"), ""},
		{"double", in("double d = 1.0; x[t] = d;"), "no double"},
		{"recursion", "inline int f(int n) { return n > 0 ? f(n - 1) : 0; }\n" + in("x[t] = float(f(3));"), "recursion"},
		{"mutual recursion", "int g(int);\ninline int f(int n) { return g(n); }\ninline int g(int n) { return f(n); }\n" + in("x[t] = 0;"), "recursion"},
		{"new", in("device float* p = new float; x[t] = 0;"), "no new"},
		{"throw", in("throw 1;"), "no exceptions"},
		{"virtual", "struct S { virtual void f(); };\n" + in("x[t] = 0;"), "no virtual"},
		{"std", in("x[t] = std::sqrt(c);"), "standard library"},
		{"static local", in("static int n = 0; x[t] = float(n++);"), "static"},
		{"mutable global", "float n = 0;\n" + in("x[t] = n;"), "constant address space"},
		{"function pointer", "inline float f(float a) { return a; }\n" + in("float (*p)(float) = f; x[t] = p(c);"), "function"},
		{"lambda", in("auto f = [&](float a) { return a; }; x[t] = f(c);"), "no lambdas"},
		{"parameter space", "inline float f(const float* p) { return p[0]; }\n" + in("x[t] = 0;"), "needs an address space"},
		{"local pointer space", in("float* p = x; x[t] = p[0];"), "needs an address space"},
		{"member pointer space", "struct S { float* p; };\n" + in("x[t] = 0;"), "no address space"},
		{"device to threadgroup", in("threadgroup float* p = x; x[t] = p[0];"), "cannot initialize"},
		{"cast across spaces", in("threadgroup float b[4]; device float* p = (device float*)b; x[t] = p[0];"), "address space"},
		{"thread to device", in("float y = 0; device float* p = &y; x[t] = p[0];"), "cannot initialize"},
		{"write to constant", in("c = 1;"), "not assignable"},
		{"template space", "template <typename T> inline T f(device const T* p) { return p[0]; }\n" + in("threadgroup float b[4]; x[t] = f(b);"), "no matching function"},
		{"implicit narrowing", in("half h = c; x[t] = float(h);"), "implicit conversion"},
		{"implicit bfloat", in("bfloat h = c; x[t] = float(h);"), "implicit conversion"},
		{"bfloat literal", in("bfloat h = 0.0f; x[t] = float(h);"), "implicit conversion to bfloat"},
		{"bfloat integer", in("bfloat h = 1; x[t] = float(h);"), "implicit conversion to bfloat"},
		{"bfloat return", "inline bfloat f(float a) { return a; }\n" + in("x[t] = float(f(c));"), "implicit conversion"},
		{"bfloat explicit", in("bfloat h = bfloat(0.0f); bfloat g = bfloat(c); x[t] = float(h) + g; x[t] = float(h * g);"), ""},
		{"vector size", in("float2 v = float2(c, c, c); x[t] = v.x;"), "number of components"},
		{"mixed min", in("x[t] = float(min(t, 3));"), "no matching function"},
		{"threadgroup in helper", "inline void f() { threadgroup float b[4]; }\n" + in("x[t] = 0;"), "threadgroup variables belong"},
		{"threadgroup in branch", in("if (t == 0) { threadgroup float b[4]; b[0] = 1; }"), "threadgroup variables belong"},
		{"newer C++", "template <int N> inline float f(float a) { if constexpr (N == 1) return a; else return 2 * a; }\n" + in("x[t] = f<1>(c);"), "before C++17"},
		{"function constant", "constant uint N [[function_constant(3)]];\ninline uint f() { return N; }\n" + in("x[t] = float(f() % N);"), ""},
		{"function constant's index", "constant uint N [[function_constant(4)]];\n" + in("x[t] = float(N);"), "index 4, want 0 to 3"},
		{"function constant's type", "constant float N [[function_constant(0)]];\n" + in("x[t] = N;"), "type float, want uint"},
		{"function constants of one index", "constant uint N [[function_constant(1)]];\nconstant uint M [[function_constant(1)]];\n" + in("x[t] = float(N + M);"), "index 1 is that of N"},
		{"write to function constant", "constant uint N [[function_constant(0)]];\n" + in("N = 1; x[t] = float(N);"), "not assignable"},
		{"slot twice", "kernel void k(device float* x [[buffer(0)]], device float* y [[buffer(0)]], uint t [[thread_position_in_grid]]) { x[t] = y[t]; }\n", "used twice"},
		{"no attribute", "kernel void k(device float* x) { x[0] = 0; }\n", "exactly one attribute"},
		{"unknown builtin", "kernel void k(device float* x [[buffer(0)]], uint t [[thread_id]]) { x[t] = 0; }\n", "unknown attribute"},
		{"mixed widths", "kernel void k(device float* x [[buffer(0)]], uint t [[thread_position_in_grid]], uint3 n [[threads_per_threadgroup]]) { x[t] = float(n.x); }\n", "one width"},
	}
	if _, err := exec.LookPath("clang-19"); err != nil {
		t.Skip("the type pass needs clang-19; scripts/emulator installs it")
	}
	dir := t.TempDir()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := check(t, dir, head+c.src)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("want %q, got %q", c.want, got)
			}
		})
	}
}

// check returns what the strict type pass says of a source named k.metal.
func check(t *testing.T, dir, source string) string {
	t.Helper()
	src, out := filepath.Join(dir, "k.metal"), filepath.Join(dir, "k.cpp")
	if err := os.WriteFile(src, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := translate("check", src, out); err != nil {
		return err.Error()
	}
	cmd := exec.Command("sh", "shim/typecheck", out)
	cmd.Dir = ".."
	if b, err := cmd.CombinedOutput(); err != nil {
		return string(b) + err.Error()
	}
	return ""
}

// TestNames checks that a source that is refused is so by file, line and kernel,
// by whatever part of the pass finds the fault.
func TestNames(t *testing.T) {
	if _, err := exec.LookPath("clang-19"); err != nil {
		t.Skip("the type pass needs clang-19; scripts/emulator installs it")
	}
	source := func(body string) string {
		return "#include <metal_stdlib>\nusing namespace metal;\n" +
			"kernel void first(device float* x [[buffer(0)]], uint t [[thread_position_in_grid]]) {\n  x[t] = 0;\n}\n" +
			"kernel void second(\n    device float* x [[buffer(0)]], uint t [[thread_position_in_grid]]) {\n  " + body + "\n}\n" +
			"kernel void third(device float* x [[buffer(0)]], uint t [[thread_position_in_grid]]) {\n  x[t] = 0;\n}\n"
	}
	for _, tt := range []struct {
		name, body string
		want       []string
	}{
		{"the compiler", "x[t] = y;", []string{"k.metal:8:10: error: use of undeclared identifier", ", in kernel second"}},
		{"what Metal has not", "double d = 0; x[t] = float(d);", []string{"k.metal:8: double: no double in Metal", ", in kernel second"}},
		{"the syntax tree", "bfloat h = 0.0f; x[t] = float(h);", []string{"k.metal:8: implicit conversion to bfloat, in second: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := check(t, t.TempDir(), source(tt.body))
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in %q", want, got)
				}
			}
			if strings.Contains(got, "first") || strings.Contains(got, "third") {
				t.Errorf("%q names another kernel", got)
			}
		})
	}
}

// TestPTXBuffers: a launch gives what is at buffers 0 and on, an argument struct
// first.
func TestPTXBuffers(t *testing.T) {
	const end = "uint t [[thread_position_in_grid]]) { x[t] = 0; }\n"
	dir := t.TempDir()
	for _, c := range []struct{ name, src, want string }{
		{"struct and pointer", "kernel void k(constant float& c [[buffer(0)]], device float* x [[buffer(1)]], " + end, ""},
		{"pointer alone", "kernel void k(device float* x [[buffer(0)]], " + end, ""},
		{"a gap", "kernel void k(constant float& c [[buffer(0)]], device float* x [[buffer(2)]], " + end, "no buffer 1"},
		{"a struct behind", "kernel void k(device float* x [[buffer(0)]], constant float& c [[buffer(1)]], " + end, "belongs at 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src, got := filepath.Join(dir, "k.metal"), ""
			if err := os.WriteFile(src, []byte(c.src), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := translate("ptx", src, filepath.Join(dir, "k.cu")); err != nil {
				got = err.Error()
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("want %q, got %q", c.want, got)
			}
		})
	}
}
