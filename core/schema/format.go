package schema

import (
	"fmt"
	"strings"
)

// formats are patterns of what is held to as "format". Where a standard allows
// odd forms, such as quoted local parts of addresses, they have its plain ones.
var formats = map[string]string{
	"date":      `^` + date + `$`,
	"time":      `^` + clock + `$`,
	"date-time": `^` + date + `T` + clock + `$`,
	"duration":  `^P(?:[0-9]{1,9}W|(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D)(?:T` + hours + `)?|T` + hours + `)$`,
	"email":     `^` + atom + `(?:\.` + atom + `){0,4}@` + label + `(?:\.` + label + `){1,4}$`,
	"hostname":  `^` + label + `(?:\.` + label + `){0,4}$`,
	"ipv4":      `^` + octet + `(?:\.` + octet + `){3}$`,
	"ipv6":      `^(?:` + ipv6() + `)$`,
	"uuid":      `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`,
	"uri":       `^[a-zA-Z][a-zA-Z0-9+.-]{0,15}:(?:` + authority + `|/?` + urlStart + urlChar + `*|/)(?:\?` + queryChar + `*)?(?:#` + queryChar + `*)?$`,
}

const (
	month31 = `(?:0[13578]|1[02])`
	leap    = `(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)`
	date    = `(?:[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|` + month31 + `-31)|` + leap + `-02-29)`
	clock   = `(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`
	hours   = `(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S)`

	// Atoms and labels have a length with which the whole is within what the
	// standards allow. A label has no two hyphens in a row, which announce an
	// encoding of other scripts.
	atom  = `[a-zA-Z0-9!#$%&'*+/=?^_{|}~-]{1,12}`
	label = `[a-zA-Z0-9](?:-?[a-zA-Z0-9]){0,31}`
	octet = `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	group = `[0-9a-fA-F]{1,4}`

	authority = `//(?:[a-zA-Z0-9._~-]+@)?` + label + `(?:\.` + label + `)*(?::[0-9]{1,5})?(?:/` + urlChar + `*)?`
	urlStart  = `(?:[a-zA-Z0-9._~!$&'()*+,;=:@-]|` + escaped + `)`
	escaped   = `%[0-9a-fA-F]{2}`
	urlChar   = `(?:[a-zA-Z0-9._~!$&'()*+,;=:@/-]|` + escaped + `)`
	queryChar = `(?:[a-zA-Z0-9._~!$&'()*+,;=:@/?-]|` + escaped + `)`
)

// ipv6 is eight groups, or fewer around two colons.
func ipv6() string {
	all := []string{`(?:` + group + `:){7}` + group}
	for left := range 8 {
		before, after := "", ""
		if left > 0 {
			before = fmt.Sprintf(`%s(?::%s){%d}`, group, group, left-1)
		}
		if right := 7 - left; right > 0 {
			after = fmt.Sprintf(`(?:%s(?::%s){0,%d})?`, group, group, right-1)
		}
		all = append(all, before+`::`+after)
	}
	return strings.Join(all, `|`)
}
