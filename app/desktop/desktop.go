// Package desktop is what Calla asks of the desktop around it: questions to
// people, the clipboard, opening and showing files, staying awake, and being
// started at login. macOS and Linux stand behind one interface.
//
// Its calls may come from any goroutine; those that the system wants on its
// main thread are brought there. What is asked and shown belongs to others.
package desktop

// Desktop is the desktop of the person who is logged in.
type Desktop interface {
	// Ask puts a question and reports whether the answer is button, rather than
	// Cancel.
	Ask(title, text, button string) (bool, error)
	// Tell says something that people must have seen.
	Tell(title, text string) error
	// Copy puts a text on the clipboard.
	Copy(text string) error
	// Open opens a web address or a file in the program for it.
	Open(target string) error
	// Reveal shows a file or folder in its folder.
	Reveal(path string) error
	// Awake keeps the machine from falling asleep by itself until release.
	Awake(reason string) (release func(), err error)
}

// Words are how the system calls things.
type Words struct {
	Machine     string // "this Mac"
	FileManager string // "Finder"
}
