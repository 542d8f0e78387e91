//go:build race

package apple

const raceEnabled = true
