package emulator

import "fmt"

// signature is what a library says of a kernel: its place in the library, and the
// names of its function constants by index, empty where it has none.
type signature struct {
	index     uint32
	constants [4]string
}

// signatures are those of all kernels by name.
type signatures map[string]signature

// add notes a kernel, of whose name there is one.
func (s signatures) add(kernel string, k signature) error {
	if _, ok := s[kernel]; ok {
		return fmt.Errorf("emulator: two kernels named %s", kernel)
	}
	s[kernel] = k
	return nil
}

// Check implements Machine.
func (s signatures) Check(kernel string, constants [4]uint32) error {
	k, ok := s[kernel]
	if !ok {
		return fmt.Errorf("emulator: no such kernel: %s", kernel)
	}
	for i, v := range constants {
		switch name := k.constants[i]; {
		case name != "" && v == 0:
			return fmt.Errorf("emulator: kernel %s: function constant %s, index %d, was not given a value", kernel, name, i)
		case name == "" && v != 0:
			return fmt.Errorf("emulator: kernel %s: function constant %d was given %d, and it has none", kernel, i, v)
		}
	}
	return nil
}

// check says which launch of a list has a kernel or constants that do not exist.
func (s signatures) check(launches []Launch) error {
	for i, l := range launches {
		if err := s.Check(l.Kernel, l.Constants); err != nil {
			return &Fault{i, l.Kernel, err.Error()}
		}
	}
	return nil
}
