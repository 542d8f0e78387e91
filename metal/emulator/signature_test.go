package emulator

import (
	"strings"
	"testing"
)

func TestOneKernelOfAName(t *testing.T) {
	s := signatures{}
	if err := s.add("copy", signature{}); err != nil {
		t.Fatal(err)
	}
	if err := s.add("copy", signature{}); err == nil || !strings.Contains(err.Error(), "two kernels named copy") {
		t.Errorf("error %v, want one that names the kernel", err)
	}
}
