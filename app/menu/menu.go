// Package menu is Calla's menu as a pure state machine: no clock, no
// goroutine, no operating system.
//
// Update takes a state and one message and returns the next state with the
// effects to carry out; View turns a state into the tree of lines to show. All
// that can be decided about the menu is decided here, so it is tested without
// a display. Drawing belongs to package tray, carrying effects out to the
// executable.
//
// Two things have a life of their own: the model's files and the engine.
// Neither is guessed at. A job on the files ends with one FilesFound, an engine
// that was asked to start with one Ended, and until then the menu says so.
package menu

import "time"

// Files says what is known of the model's files on disk.
type Files string

// The states of the files. Downloading, Verifying and Removing are jobs; each
// ends with a FilesFound.
const (
	Checking    Files = "checking" // at launch, by the receipt
	Absent      Files = "absent"
	Partial     Files = "partial" // some have arrived; a download goes on from there
	Downloading Files = "downloading"
	Verifying   Files = "verifying"
	Removing    Files = "removing"
	Whole       Files = "whole" // every digest matched
	Damaged     Files = "damaged"
)

func (f Files) job() bool { return f == Downloading || f == Verifying || f == Removing }

// Engine says what the engine's process is doing.
type Engine string

// The states of the engine. Those from Launching to Stopping may have a
// process.
const (
	Off       Engine = "off"
	Launching Engine = "launching" // started, its address not bound yet
	Loading   Engine = "loading"   // reading weights
	Ready     Engine = "ready"     // nothing to do
	Busy      Engine = "busy"      // answering
	Unloaded  Engine = "unloaded"  // idle, weights freed
	Stuck     Engine = "stuck"     // a step takes far too long
	Waiting   Engine = "waiting"   // crashed; started again in a while
	Stopping  Engine = "stopping"
	Failed    Engine = "failed" // ended, and will not start again by itself
)

func (e Engine) alive() bool { return e != Off && e != Failed }

// serving says whether programs can call the engine now.
func (e Engine) serving() bool { return e == Ready || e == Busy || e == Unloaded }

// Cause is the kind of reason for which an engine ended.
type Cause string

// The causes. Only after a crash is an engine started again by itself.
const (
	Asked  Cause = ""       // it was told to
	Crash  Cause = "crash"  // again and again
	Usage  Cause = "usage"  // of settings that are wrong
	Port   Cause = "port"   // which another program has
	Model  Cause = "model"  // which is missing, damaged or another one
	Memory Cause = "memory" // of which there is too little
)

// State is all that the menu shows.
type State struct {
	Host     Host
	About    About
	Settings Settings
	Choices  []Choice // of the context, for the settings now
	Mistakes []string // in the preferences file, in words
	Login    Login

	Files       Files
	FilesReason string   // why they are not whole
	Removable   bool     // the files are Calla's own
	Job         Progress // of a job on the files
	Halting     bool     // the job was told to stop

	Engine   Engine
	Running  Settings // those the engine was started with
	URL      string   // where the engine listens, without a path
	Status   Status   // the newest reading
	Cause    Cause    // why it failed
	Reason   string   // why it failed, crashed or does not respond
	Try, Of  int      // while Waiting: which restart comes, of how many
	Errors   []Error  // of engines before this one, newest first
	Again    bool     // start once Stopping is over
	Quitting bool     // leave once Stopping is over

	Note string // what went wrong with the newest wish
}

// Host is what the menu says of the machine.
type Host struct {
	Name        string // "this Mac"
	FileManager string // "Finder"
	Memory      int64  // bytes, 0 where unknown
}

// About is what is known before anything runs.
type About struct {
	Version    string
	Model      string // repository of the pinned checkpoint
	Revision   string
	ModelBytes int64
}

// Settings are the preferences that the menu shows.
type Settings struct {
	Demo         bool // the built-in model instead of the downloaded one
	MaxSeq       int
	CacheEntries int
	IdleUnload   time.Duration // 0 is never
	Key          bool          // requests must carry the key
	Rest         string        // the engine's other settings, only to compare

	StartEngine bool // at launch
}

// engine returns what an engine is started with.
func (s Settings) engine() Settings {
	s.StartEngine = false
	return s
}

// Choice is one context length.
type Choice struct {
	Tokens int
	Bytes  int64  // of memory at most
	Why    string // why it cannot be had; empty where it can
}

// Login is launch at login, as the system has it.
type Login struct {
	On      bool
	Refused string // why it cannot be changed
}

// Progress is how far a job is.
type Progress struct {
	Done, Total int64         // bytes
	Rate        float64       // bytes a second, 0 where unknown
	Left        time.Duration // 0 where unknown
	Note        string        // why there is a wait
}

// Status is one reading of the engine's status.
type Status struct {
	State                      Engine // Loading, Ready, Busy, Unloaded, Stuck, Stopping or Failed
	Reason                     string
	Loaded, ToLoad             int64 // bytes, while Loading
	MemoryUsed, MemoryNeeded   int64 // bytes
	PrefillNow, DecodeNow      float64
	Answered                   bool // the last two are those of an answer
	PrefillLast, DecodeLast    float64
	QueueRunning, QueueWaiting int
	Errors                     string // recent ones, one a line, newest first
	Hot, Saving                bool   // heat, or a mode that saves energy, slows the machine down
	Receipt                    string // which files run, and how far they are known to be right
}

// Error is one line of the recent errors.
type Error struct {
	At   time.Time
	Text string
}

// Stale says whether the engine runs with other settings than those chosen.
func (s State) Stale() bool {
	return s.Engine.alive() && s.Engine != Stopping && s.Running != s.Settings.engine()
}

// Awake says whether the machine should not fall asleep by itself.
func (s State) Awake() bool {
	return s.Engine == Busy || s.Engine == Loading || s.Files == Downloading || s.Files == Verifying
}

// modelReady says whether there is a model to start.
func (s State) modelReady() bool { return s.Settings.Demo || s.Files == Whole }

// inUse says whether an engine may have the downloaded files open.
func (s State) inUse() bool { return s.Engine.alive() && !s.Running.Demo }

func (s State) canStart() bool {
	return (!s.Engine.alive() || s.Engine == Waiting) && s.modelReady()
}

func (s State) canDownload() bool {
	return (s.Files == Absent || s.Files == Partial || s.Files == Damaged) && !s.inUse()
}

func (s State) canVerify() bool {
	return (s.Files == Whole || s.Files == Damaged) && !s.inUse()
}

func (s State) canRemove() bool {
	return (s.Files == Whole || s.Files == Damaged || s.Files == Partial) && s.Removable && !s.inUse()
}
