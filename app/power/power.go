// Package power is what Calla asks of the machine's power: that it stays awake
// while there is work, word of its sleep, and whether heat or a saving mode slows
// it down. macOS and Linux stand behind one interface; where a system offers
// nothing, nothing is done.
//
// When to ask belongs to others.
package power

import "context"

// Machine is the machine that the program runs on.
type Machine interface {
	// Hold keeps the machine from falling asleep by itself until release. A
	// person may still send it to sleep.
	Hold(reason string) (release func(), err error)
	// Watch tells of the machine's sleep until ctx ends. It calls before when the
	// machine is about to sleep, which waits for before a while, and after once it
	// is awake again. After may come without before. It returns an error where the
	// system does not tell.
	Watch(ctx context.Context, before, after func()) error
	// Condition says how the machine is now.
	Condition() Condition
}

// Thermal is how much heat slows the machine down.
type Thermal string

// The thermal states, as macOS names them. Where a system only tells that it
// slows down, that is Serious.
const (
	Unknown  Thermal = ""
	Nominal  Thermal = "nominal"
	Fair     Thermal = "fair"     // fans may be heard
	Serious  Thermal = "serious"  // slowed down
	Critical Thermal = "critical" // slowed down a great deal
)

// Condition is what slows the machine down.
type Condition struct {
	Thermal Thermal
	// LowPower says that a mode is on which saves energy at the cost of speed.
	LowPower bool
}

// New returns this machine.
func New() Machine { return newMachine() }
