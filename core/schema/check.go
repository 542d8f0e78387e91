package schema

import (
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"calla/core/grammar/dfa"
)

// document is the name under which the validator knows the schema.
const document = "https://schema.invalid/schema"

// checker is the validator's view of a schema.
type checker struct{ compiler *jsonschema.Compiler }

// check holds a schema against its meta-schema.
func check(v *value) (*checker, *Error) {
	c := &checker{jsonschema.NewCompiler()}
	c.compiler.UseLoader(nothing{})
	c.compiler.UseRegexpEngine(pattern)
	if err := c.compiler.AddResource(document, v.plain()); err != nil {
		return nil, (*path)(nil).fault("it is not JSON Schema")
	}
	_, err := c.compiler.Compile(document)
	if err == nil {
		return c, nil
	}
	var invalid *jsonschema.SchemaValidationError
	var cause *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &cause) {
		for len(cause.Causes) > 0 {
			cause = cause.Causes[0]
		}
		var at *path
		fault := "it is not what JSON Schema has here"
		if k := cause.ErrorKind.KeywordPath(); len(k) > 0 {
			fault += " (" + strings.Join(k, ".") + ")"
		}
		return nil, at.to(cause.InstanceLocation...).fault("%s", fault)
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return nil, (*path)(nil).fault("it refers to another document; want references within it, as #/$defs/name")
	}
	var pointer *jsonschema.JSONPointerNotFoundError
	if errors.As(err, &pointer) {
		return nil, (*path)(nil).fault("a $ref leads nowhere")
	}
	return nil, (*path)(nil).fault("it is not JSON Schema: %T", err)
}

// nothing loads no documents.
type nothing struct{}

func (nothing) Load(string) (any, error) { return nil, errors.New("schema: nothing is fetched") }

// fits returns what tells whether a value fits the part of the schema at p.
func (c *checker) fits(p *path) (func(*value) bool, error) {
	s, err := c.compiler.Compile(document + "#" + p.pointer())
	return func(v *value) bool { return s.Validate(v.plain()) == nil }, err
}

// patternWork bounds a pattern that only a constant is held against.
const patternWork = 1 << 20

// pattern is our patterns as the validator takes them. What is wrong with one
// is said where it is held to.
func pattern(p string) (jsonschema.Regexp, error) { return lazyPattern(p), nil }

type lazyPattern string

func (p lazyPattern) String() string { return string(p) }

func (p lazyPattern) MatchString(s string) bool {
	c, err := dfa.NewMaker(patternWork).Pattern(string(p))
	return err == nil && c.Has(s)
}
