package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"calla/app/prefs"
)

// flagOf is the flag of a preference, or of what is no preference and has a name,
// a default, a check and a help text all the same.
type flagOf struct {
	prefs.Preference
	value string
	given bool
	set   func(string)
	kind  string
}

// bind adds the flag of a preference of the list.
func bind(f *pflag.FlagSet, key string, target any) { checked(f, prefs.Must(key), target) }

// checked adds a flag that puts its value into target: an *int, *string, *bool,
// *time.Duration or *[]string.
func checked(f *pflag.FlagSet, p prefs.Preference, target any) {
	v := &flagOf{Preference: p}
	switch t := target.(type) {
	case *int:
		v.kind, v.set = "int", func(s string) { *t, _ = strconv.Atoi(s) }
	case *string:
		v.kind, v.set = "string", func(s string) { *t = s }
	case *bool:
		v.kind, v.set = "bool", func(s string) { *t = s == "true" }
	case *time.Duration:
		v.kind, v.set = "duration", func(s string) { *t, _ = prefs.Idle(s) }
	case *[]string:
		v.kind, v.set = "strings", func(s string) { *t = prefs.Split(s) }
	default:
		panic(fmt.Sprintf("flag %s for a %T", p.Key, target))
	}
	v.value = v.Default
	v.set(v.Default)
	f.Var(v, p.Key, v.Help)
	if v.kind == "bool" {
		f.Lookup(p.Key).NoOptDefVal = "true" // the flag alone
	}
}

func (v *flagOf) String() string { return v.value }

func (v *flagOf) Type() string { return v.kind }

// Set takes a value that passes the preference's check. Several of one flag
// with several values are taken together.
func (v *flagOf) Set(s string) error {
	if err := v.Check(s); err != nil {
		return err
	}
	if v.kind == "strings" && v.given {
		s = v.value + "," + s
	}
	v.value, v.given = s, true
	v.set(s)
	return nil
}
