package menu

import "time"

// Msg is an intent (what a person wants) or a fact (what happened).
type Msg interface{ msg() }

// Intents. None carries anything read from the state: a click may come from a
// menu that was drawn before the state moved on, so a check box sends
// ToggleLogin and not the value it would get.
type (
	Start          struct{}
	Stop           struct{}
	Restart        struct{}
	Download       struct{}
	Halt           struct{} // the job on the files
	Verify         struct{}
	Reveal         struct{}
	AskRemove      struct{}
	Remove         struct{} // confirmed
	ToggleDemo     struct{}
	SetMaxSeq      struct{ Tokens int }
	SetEntries     struct{ Entries int }
	SetIdle        struct{ Idle time.Duration }
	ToggleStart    struct{} // of the engine, at launch
	ToggleLogin    struct{}
	ToggleKey      struct{}
	NewKey         struct{}
	CopyKey        struct{}
	CopyAddress    struct{}
	OpenChat       struct{}
	EditPreference struct{} // the file
	ShowLog        struct{}
	Quit           struct{}
)

// Facts.
type (
	// FilesFound is what the files are, at launch and after each job.
	FilesFound struct {
		Files     Files // Absent, Partial, Whole or Damaged
		Reason    string
		Removable bool
	}
	// JobProgress is a job's newest progress.
	JobProgress struct{ Progress }

	// Listening comes from an engine that has bound its address.
	Listening struct{ URL string }
	// Observed is a reading of a listening engine's status.
	Observed struct{ Status }
	// Crashed is an engine that ended by itself and is started again after a
	// wait, for the Try-th time of Of.
	Crashed struct {
		At      time.Time
		Reason  string
		Try, Of int
	}
	// Relaunched is the end of that wait.
	Relaunched struct{}
	// Ended says that no engine process is left, and none will come.
	Ended struct {
		At     time.Time
		Cause  Cause
		Reason string
	}

	// PreferencesRead is what the preferences file says, and what is wrong in
	// it.
	PreferencesRead struct {
		Settings Settings
		Choices  []Choice
		Mistakes []string
	}
	// LoginRead is launch at login as the system has it.
	LoginRead struct{ Login }
	// Trouble says that a wish could not be carried out.
	Trouble struct{ Text string }
)

func (Start) msg()           {}
func (Stop) msg()            {}
func (Restart) msg()         {}
func (Download) msg()        {}
func (Halt) msg()            {}
func (Verify) msg()          {}
func (Reveal) msg()          {}
func (AskRemove) msg()       {}
func (Remove) msg()          {}
func (ToggleDemo) msg()      {}
func (SetMaxSeq) msg()       {}
func (SetEntries) msg()      {}
func (SetIdle) msg()         {}
func (ToggleStart) msg()     {}
func (ToggleLogin) msg()     {}
func (ToggleKey) msg()       {}
func (NewKey) msg()          {}
func (CopyKey) msg()         {}
func (CopyAddress) msg()     {}
func (OpenChat) msg()        {}
func (EditPreference) msg()  {}
func (ShowLog) msg()         {}
func (Quit) msg()            {}
func (FilesFound) msg()      {}
func (JobProgress) msg()     {}
func (Listening) msg()       {}
func (Observed) msg()        {}
func (Crashed) msg()         {}
func (Relaunched) msg()      {}
func (Ended) msg()           {}
func (PreferencesRead) msg() {}
func (LoginRead) msg()       {}
func (Trouble) msg()         {}

// Effect is something for the executable to carry out. What comes of it
// arrives as a fact.
type Effect interface{ effect() }

// Effects.
type (
	StartEngine struct{ Settings Settings }
	// StopEngine ends the engine: in order, or Soon, as quitting wants it.
	StopEngine    struct{ Soon bool }
	StartDownload struct{}
	StartVerify   struct{}
	StartRemove   struct{}
	HaltJob       struct{}
	// Ask puts a question; Then is sent where the answer is Button.
	Ask struct {
		Title, Text, Button string
		Then                Msg
	}
	// Store sets one preference.
	Store           struct{ Key, Value string }
	SetLogin        struct{ On bool }
	SetKey          struct{ On bool }
	MakeKey         struct{}
	TakeKey         struct{} // into the pasteboard
	CopyText        struct{ Text string }
	OpenPage        struct{ URL string }
	RevealFiles     struct{}
	OpenPreferences struct{}
	OpenLog         struct{}
	KeepAwake       struct{ On bool }
	Exit            struct{}
)

func (StartEngine) effect()     {}
func (StopEngine) effect()      {}
func (StartDownload) effect()   {}
func (StartVerify) effect()     {}
func (StartRemove) effect()     {}
func (HaltJob) effect()         {}
func (Ask) effect()             {}
func (Store) effect()           {}
func (SetLogin) effect()        {}
func (SetKey) effect()          {}
func (MakeKey) effect()         {}
func (TakeKey) effect()         {}
func (CopyText) effect()        {}
func (OpenPage) effect()        {}
func (RevealFiles) effect()     {}
func (OpenPreferences) effect() {}
func (OpenLog) effect()         {}
func (KeepAwake) effect()       {}
func (Exit) effect()            {}
