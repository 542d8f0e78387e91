package main

import (
	"fmt"
	"strconv"
	"strings"
)

// lengths is a flag of lengths in tokens. Several of one flag are taken together.
type lengths struct{ to *[]int }

func (l lengths) String() string {
	if l.to == nil {
		return ""
	}
	all := make([]string, len(*l.to))
	for i, n := range *l.to {
		all[i] = strconv.Itoa(n)
	}
	return strings.Join(all, ",")
}

func (lengths) Type() string { return "lengths" }

func (l lengths) Set(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return fmt.Errorf("%q is no length, want whole numbers of tokens with commas between them, such as 256,4096", word)
		}
		*l.to = append(*l.to, n)
	}
	return nil
}
