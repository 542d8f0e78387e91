package server

import "calla/core/server/strictjson"

// Field is one line of the table of what a request may hold. The same line
// checks requests, fills GET /v1/capabilities and stands in the README.
type Field struct {
	Name string
	// Takes is what the value must be; nil refuses the field. Null counts as
	// absent for every field.
	Takes    shape
	Required bool
	// Note says in one line what the field does here, or why it is refused.
	Note string
}

// Support says what becomes of a field.
type Support string

// The ways to treat a field.
const (
	Honoured Support = "honoured" // any value in range does what it says
	Fixed    Support = "fixed"    // the listed values ask for what happens anyway; others are a 400
	Refused  Support = "refused"  // a 400 that names the field
)

// support returns how f is treated.
func (f Field) support() Support {
	if f.Takes == nil {
		return Refused
	}
	if _, fixed := f.Takes.(only); fixed {
		return Fixed
	}
	return Honoured
}

// object is an object with exactly these fields.
type object []Field

func (o object) takes(k strictjson.Kind) bool { return k == strictjson.Object }

func (o object) says() string { return "object" }

func (o object) check(p *place, v strictjson.Value) *apiError {
	for _, m := range v.Members {
		f := o.find(m.Name)
		if f == nil {
			at := p.member(shortName(m.Name)).String()
			return badField(codeUnknown, at, "%s is not a field here; GET /v1/capabilities lists what is", at)
		}
		if m.Value.Kind == strictjson.Null {
			continue
		}
		at := p.member(m.Name)
		if f.Takes == nil {
			return badField(codeUnsupported, at.String(), "%s is not supported: %s", at, f.Note)
		}
		if err := checkShape(f.Takes, at, m.Value); err != nil {
			return err
		}
	}
	return o.missing(p, v)
}

func (o object) find(name string) *Field {
	for i := range o {
		if o[i].Name == name {
			return &o[i]
		}
	}
	return nil
}

func (o object) missing(p *place, v strictjson.Value) *apiError {
	for _, f := range o {
		if !f.Required {
			continue
		}
		if m, ok := v.Get(f.Name); !ok || m.Kind == strictjson.Null {
			at := p.member(f.Name).String()
			return badField(codeMissing, at, "%s is required", at)
		}
	}
	return nil
}

// join returns the fields of all parts.
func join(parts ...object) object {
	var all object
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// tagged is an object whose fields depend on the value of one of them.
type tagged struct {
	tag    string
	absent string // the tag's value where it is not given; "" makes it required
	cases  []variant
}

// variant is one form of a tagged object.
type variant struct {
	values  []string // of the tag
	fields  object   // beside the tag
	refused string   // why this form is refused, or ""
	note    string
}

func (t tagged) takes(k strictjson.Kind) bool { return k == strictjson.Object }

func (t tagged) says() string { return "object" }

func (t tagged) check(p *place, v strictjson.Value) *apiError {
	at := p.member(t.tag)
	value := t.absent
	if m, ok := v.Get(t.tag); ok && m.Kind != strictjson.Null {
		if m.Kind != strictjson.String {
			return badField(codeType, at.String(), "%s is of type %s, want string", at, m.Kind)
		}
		value = m.Text()
	} else if t.absent == "" {
		return badField(codeMissing, at.String(), "%s is required", at)
	}
	c := t.find(value)
	if c == nil {
		return badField(codeValue, at.String(), "%s must be %s", at, t.values())
	}
	if c.refused != "" {
		return badField(codeUnsupValue, at.String(), "%s: this value is not supported: %s", at, c.refused)
	}
	tag := Field{Name: t.tag, Takes: text{}}
	return append(object{tag}, c.fields...).check(p, v)
}

func (t tagged) find(value string) *variant {
	for i := range t.cases {
		for _, v := range t.cases[i].values {
			if v == value {
				return &t.cases[i]
			}
		}
	}
	return nil
}

// values lists the values of the tag that are taken.
func (t tagged) values() string {
	var all oneOf
	for _, c := range t.cases {
		if c.refused == "" {
			all = append(all, c.values...)
		}
	}
	return all.says()
}
