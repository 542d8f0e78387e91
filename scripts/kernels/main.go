// Command kernels writes the Go assembly of the CPU backend's fast kernels, one
// family a run:
//
//	go run . -family vector -out F_amd64.s -stubs F_amd64.go -pkg cpu
//
// It has a module of its own, so that the product does not depend on what
// generates its source. core/cpu/fast_amd64.go says what is made of what.
//
// Every function is written once for whole vectors and once for what remains;
// both do the same operations on each value in the same order, so that a value
// does not depend on where it lies.
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
)

var families = map[string]func(){
	"vector":  vectorFamily,
	"matmul":  matMulFamily,
	"product": productFamily,
	"vnni":    vnniFamily,
	"amx":     amxFamily,
}

func main() {
	family := flag.String("family", "", "which kernels to write: vector, matmul, product, vnni or amx")
	flag.Parse()
	write, ok := families[*family]
	if !ok {
		log.Fatalf("kernels: no family %q", *family)
	}
	ConstraintExpr("amd64")
	write()
	Generate()
}
