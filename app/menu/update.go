package menu

import (
	"slices"
	"strconv"
	"time"
)

// Update is the whole behaviour. A message that makes no sense in the state,
// such as a click that arrived after the state moved on, changes nothing.
func Update(s State, m Msg) (State, []Effect) {
	next, effects := update(s, m)
	if a := next.Awake(); a != s.Awake() {
		effects = append(effects, KeepAwake{a})
	}
	return next, effects
}

func update(s State, m Msg) (State, []Effect) {
	if s.Quitting {
		return leaving(s, m)
	}
	switch m := m.(type) {
	case Listening, Observed, Crashed, Relaunched, Ended:
		return engineFact(s, m)
	case FilesFound, JobProgress:
		return filesFact(s, m)
	case PreferencesRead:
		s.Settings, s.Choices, s.Mistakes = m.Settings, m.Choices, m.Mistakes
		return s, nil
	case LoginRead:
		s.Login = m.Login
		return s, nil
	case Trouble:
		s.Note = m.Text
		return s, nil
	}
	s.Note = "" // of an earlier wish
	switch m.(type) {
	case Start, Stop, Restart, Quit:
		return engineWish(s, m)
	case Download, Halt, Verify, AskRemove, Remove, Reveal:
		return filesWish(s, m)
	case CopyAddress:
		if s.URL == "" {
			return s, nil
		}
		return s, []Effect{CopyText{s.BaseURL()}}
	case OpenChat:
		if s.Engine.serving() {
			return s, []Effect{OpenPage{s.URL + "/"}}
		}
		return s, nil
	case EditPreference:
		return s, []Effect{OpenPreferences{}}
	case ShowLog:
		return s, []Effect{OpenLog{}}
	}
	return settingsWish(s, m)
}

// leaving waits for the engine's end, unless it is told to quit once more.
func leaving(s State, m Msg) (State, []Effect) {
	switch m.(type) {
	case Ended:
		s.Engine = Off
		return s, []Effect{Exit{}}
	case Quit:
		return s, []Effect{Exit{}}
	}
	return s, nil
}

func engineWish(s State, m Msg) (State, []Effect) {
	switch m.(type) {
	case Start:
		switch {
		case s.Engine == Stopping && s.modelReady():
			s.Again = true
		case s.canStart():
			return start(s)
		}
	case Stop:
		if s.Engine == Stopping {
			s.Again = false
		} else if s.Engine.alive() {
			s.Engine, s.Again = Stopping, false
			return s, []Effect{StopEngine{}}
		}
	case Restart:
		if s.Engine.alive() && s.Engine != Stopping && s.modelReady() {
			s.Engine, s.Again = Stopping, true
			return s, []Effect{StopEngine{}}
		}
	case Quit:
		return quit(s)
	}
	return s, nil
}

func start(s State) (State, []Effect) {
	s.Engine, s.Running, s.Again = Launching, s.Settings.engine(), false
	s.URL, s.Status, s.Cause, s.Reason, s.Try, s.Of = "", Status{}, Asked, "", 0, 0
	return s, []Effect{StartEngine{s.Running}}
}

func quit(s State) (State, []Effect) {
	s.Quitting = true
	var effects []Effect
	if s.Files.job() {
		effects = append(effects, HaltJob{})
	}
	if !s.Engine.alive() {
		return s, append(effects, Exit{})
	}
	s.Engine, s.Again = Stopping, false
	return s, append(effects, StopEngine{Soon: true})
}

func engineFact(s State, m Msg) (State, []Effect) {
	if end, ok := m.(Ended); ok {
		return ended(s, end)
	}
	if !s.Engine.alive() || s.Engine == Stopping {
		return s, nil // word from before the stop
	}
	switch m := m.(type) {
	case Listening:
		s.Engine, s.URL = Loading, m.URL
	case Observed:
		if s.Engine == Launching || s.Engine == Waiting {
			return s, nil // of a process before this one
		}
		s.Status, s.Reason = m.Status, m.Status.Reason
		// An engine that stops or has failed by its own word is not believed
		// to be gone: its end is a fact of its own.
		if m.State != Stopping && m.State != Failed {
			s.Engine = m.State
		}
	case Crashed:
		s.Engine, s.URL, s.Status = Waiting, "", Status{}
		s.Reason, s.Try, s.Of = m.Reason, m.Try, m.Of
		s.Errors = remember(s.Errors, Error{m.At, m.Reason})
	case Relaunched:
		if s.Engine == Waiting {
			s.Engine = Launching
		}
	}
	return s, nil
}

func ended(s State, m Ended) (State, []Effect) {
	asked := s.Engine == Stopping
	s.URL, s.Status, s.Cause, s.Reason = "", Status{}, Asked, ""
	switch {
	case !s.Engine.alive():
		return s, nil
	case asked && s.Again && s.modelReady():
		return start(s)
	case asked || m.Cause == Asked:
		s.Engine, s.Again = Off, false
		return s, nil
	}
	s.Engine, s.Cause, s.Reason = Failed, m.Cause, m.Reason
	s.Errors = remember(s.Errors, Error{m.At, m.Reason})
	return s, nil
}

// errorsKept is how many recent errors have a line.
const errorsKept = 5

func remember(old []Error, e Error) []Error {
	if len(old) > 0 && old[0].Text == e.Text {
		old = old[1:] // the same again
	}
	all := slices.Concat([]Error{e}, old)
	return all[:min(len(all), errorsKept)]
}

func filesWish(s State, m Msg) (State, []Effect) {
	switch m.(type) {
	case Download:
		if s.canDownload() {
			return job(s, Downloading, StartDownload{})
		}
	case Verify:
		if s.canVerify() {
			return job(s, Verifying, StartVerify{})
		}
	case AskRemove:
		if s.canRemove() {
			return s, []Effect{Ask{
				Title: "Remove the model's files?", Button: "Remove", Then: Remove{},
				Text: "They take " + fileSize(s.About.ModelBytes) + ". Calla can download them again.",
			}}
		}
	case Remove:
		if s.canRemove() {
			return job(s, Removing, StartRemove{})
		}
	case Halt:
		if (s.Files == Downloading || s.Files == Verifying) && !s.Halting {
			s.Halting = true
			return s, []Effect{HaltJob{}}
		}
	case Reveal:
		if s.Files != Absent && s.Files != Checking {
			return s, []Effect{RevealFiles{}}
		}
	}
	return s, nil
}

func job(s State, f Files, e Effect) (State, []Effect) {
	s.Files, s.FilesReason, s.Halting = f, "", false
	s.Job = Progress{Total: s.About.ModelBytes}
	return s, []Effect{e}
}

func filesFact(s State, m Msg) (State, []Effect) {
	switch m := m.(type) {
	case JobProgress:
		if s.Files.job() {
			s.Job = m.Progress
		}
	case FilesFound:
		before := s.Files
		s.Files, s.FilesReason, s.Removable = m.Files, m.Reason, m.Removable
		s.Job, s.Halting = Progress{}, false
		// Who wants the engine at launch wants it once there is a model, too.
		fresh := before == Checking || before == Downloading
		if fresh && s.Settings.StartEngine && s.Engine == Off && s.canStart() {
			return start(s)
		}
	}
	return s, nil
}

func settingsWish(s State, m Msg) (State, []Effect) {
	was := s.Settings
	var e Effect
	switch m := m.(type) {
	case SetMaxSeq:
		s.Settings.MaxSeq = m.Tokens
		e = Store{"max-seq", strconv.Itoa(m.Tokens)}
	case SetEntries:
		s.Settings.CacheEntries = m.Entries
		e = Store{"cache-entries", strconv.Itoa(m.Entries)}
	case SetIdle:
		s.Settings.IdleUnload = m.Idle
		e = Store{"idle-unload", idleValue(m.Idle)}
	case ToggleDemo:
		s.Settings.Demo = !s.Settings.Demo
		e = Store{"demo", strconv.FormatBool(s.Settings.Demo)}
	case ToggleStart:
		s.Settings.StartEngine = !s.Settings.StartEngine
		e = Store{"start-engine", strconv.FormatBool(s.Settings.StartEngine)}
	case ToggleKey:
		s.Settings.Key = !s.Settings.Key
		e = SetKey{s.Settings.Key}
	case ToggleLogin:
		if s.Login.Refused != "" {
			return s, nil
		}
		s.Login.On = !s.Login.On
		return s, []Effect{SetLogin{s.Login.On}}
	case NewKey:
		return s, []Effect{MakeKey{}}
	case CopyKey:
		if s.Settings.Key {
			return s, []Effect{TakeKey{}}
		}
	}
	if s.Settings == was {
		return s, nil
	}
	return s, []Effect{e}
}

func idleValue(d time.Duration) string {
	if d == 0 {
		return "never"
	}
	return d.String()
}

// BaseURL is what programs are given, empty where nothing listens.
func (s State) BaseURL() string {
	if s.URL == "" {
		return ""
	}
	return s.URL + "/v1"
}
