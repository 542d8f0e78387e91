// Command seal seals an app bundle ad hoc on any system, and verifies one.
//
//	seal Calla.app          writes the seal: CodeResources and the signature of
//	                        the executable, with the hardened runtime
//	seal -check Calla.app   verifies every page, file and flag of a sealed
//	                        bundle, whoever signed it
//
// With -links Metal the executable must also be linked to that framework: one that
// was built without a part of it starts all the same.
//
// An ad hoc seal says that nothing was changed, not who made it. For others to
// open the app without a warning it must be signed with a Developer ID.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	check := flag.Bool("check", false, "verify a sealed bundle")
	links := flag.String("links", "", "a framework that the executable must be linked to")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: seal [-check] BUNDLE")
		os.Exit(2)
	}
	b, err := openBundle(flag.Arg(0))
	if err == nil && !*check {
		err = b.seal()
	}
	var report string
	if err == nil {
		b.links = *links
		report, err = b.verify()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seal:", err)
		os.Exit(1)
	}
	fmt.Print(report)
}
