package menu

import (
	"fmt"
	"strings"
)

// said is the top of the menu: how things are, why, and what to do about it.
type said struct{ status, detail, remedy string }

func words(s State) said {
	if s.Engine != Off {
		return engineWords(s)
	}
	if s.Settings.Demo && !s.Files.job() {
		return said{status: "Stopped"}
	}
	return filesWords(s)
}

func engineWords(s State) said {
	switch s.Engine {
	case Launching:
		return said{status: "Starting…"}
	case Loading:
		return said{status: "Loading " + percent(s.Status.Loaded, s.Status.ToLoad)}
	case Busy:
		return said{status: busyStatus(s.Status), detail: queueLine(s.Status)}
	case Unloaded:
		return said{status: "Idle, Memory Freed", detail: "The next request loads the model again"}
	case Stuck:
		return said{"Not Responding", s.Reason, "Calla starts the engine again if this goes on"}
	case Waiting:
		return said{"Starting Again…", s.Reason, fmt.Sprintf("Try %d of %d", s.Try, s.Of)}
	case Stopping:
		if s.Again {
			return said{status: "Restarting…"}
		}
		return said{status: "Stopping…"}
	case Failed:
		return said{"Failed", s.Reason, remedies[s.Cause]}
	}
	return said{status: "Ready"}
}

var remedies = map[Cause]string{
	Crash:  "Start the engine again; the log says more",
	Usage:  "Mend the preferences file, then start the engine",
	Port:   "End that program, or choose another port in the preferences file",
	Model:  "Verify the model's files",
	Memory: "Choose a shorter context, or remember fewer conversations",
}

func filesWords(s State) said {
	switch s.Files {
	case Checking:
		return said{status: "Looking for the Model…"}
	case Absent:
		return said{"No Model", orElse(s.FilesReason, "The model is not on "+s.Host.Name+" yet"), "Download it, or use the built-in demo model"}
	case Partial:
		return said{"Model Incomplete", s.FilesReason, "Continue the download"}
	case Downloading:
		return said{status: "Downloading " + percent(s.Job.Done, s.Job.Total), detail: jobLine(s.Job)}
	case Verifying:
		return said{status: "Verifying " + percent(s.Job.Done, s.Job.Total), detail: jobLine(s.Job)}
	case Removing:
		return said{status: "Removing the Model…"}
	case Damaged:
		return said{"Model Damaged", s.FilesReason, "Download what is damaged"}
	}
	return said{status: "Stopped", detail: s.FilesReason}
}

// filesLine is the state of the files where the top tells of the engine.
func filesLine(s State) string {
	switch s.Files {
	case Downloading, Verifying:
		w := filesWords(s)
		return w.status + ": " + w.detail
	case Whole:
		return "Downloaded and verified, " + fileSize(s.About.ModelBytes)
	case Absent:
		return "Not downloaded"
	}
	w := filesWords(s)
	if w.detail == "" {
		return w.status
	}
	return w.status + ": " + w.detail
}

// besideLine is a job on the files while the top tells of the engine.
func besideLine(s State) string {
	if s.Engine == Off || !s.Files.job() {
		return ""
	}
	return filesLine(s)
}

func busyStatus(s Status) string {
	switch {
	case s.DecodeNow > 0:
		return "Answering at " + rate(s.DecodeNow)
	case s.PrefillNow > 0:
		return "Reading a Prompt at " + rate(s.PrefillNow)
	}
	return "Answering"
}

func queueLine(s Status) string {
	switch s.QueueWaiting {
	case 0:
		return ""
	case 1:
		return "1 more request waits"
	}
	return fmt.Sprintf("%d more requests wait", s.QueueWaiting)
}

func memoryLine(s State) string {
	if !s.Engine.serving() && s.Engine != Loading || s.Status.MemoryNeeded == 0 {
		return ""
	}
	line := fmt.Sprintf("Memory: %s in use, %s at most", memorySize(s.Status.MemoryUsed), memorySize(s.Status.MemoryNeeded))
	if s.Host.Memory > 0 {
		line += ", of " + memorySize(s.Host.Memory)
	}
	return line
}

// speedLine shows the two rates of a completion apart: of the one that runs,
// else of the last.
func speedLine(s State) string {
	switch {
	case !s.Engine.serving():
		return ""
	case s.Engine == Busy && s.Status.DecodeNow > 0:
		return "Now: prompt " + rate(s.Status.PrefillNow) + ", answer " + rate(s.Status.DecodeNow)
	case s.Status.Answered:
		return "Last: prompt " + rate(s.Status.PrefillLast) + ", answer " + rate(s.Status.DecodeLast)
	}
	return ""
}

// slowLine says what makes answers slower than they were.
func slowLine(s State) string {
	if !s.Engine.serving() {
		return ""
	}
	name := sentence(s.Host.Name)
	switch {
	case s.Status.Hot && s.Status.Saving:
		return name + " is hot and saves power: answers are slower"
	case s.Status.Hot:
		return name + " is hot: answers are slower"
	case s.Status.Saving:
		return name + " saves power: answers are slower"
	}
	return ""
}

func staleLine(s State) string {
	if !s.Stale() {
		return ""
	}
	return "Changed preferences need a restart of the engine"
}

func mistakeLine(s State) string {
	switch n := len(s.Mistakes); n {
	case 0:
		return ""
	case 1:
		return "Preferences: " + s.Mistakes[0]
	default:
		return fmt.Sprintf("Preferences: %s (and %d more)", s.Mistakes[0], n-1)
	}
}

func jobLine(p Progress) string {
	parts := []string{fileSize(p.Done) + " of " + fileSize(p.Total)}
	if p.Rate > 0 {
		parts = append(parts, fileSize(int64(p.Rate))+"/s")
	}
	if p.Left > 0 {
		parts = append(parts, span(p.Left)+" left")
	}
	if p.Note != "" {
		parts = append(parts, p.Note)
	}
	return strings.Join(parts, " · ")
}

// modelName is a repository's name without its owner's.
func modelName(repository string) string {
	return repository[strings.LastIndex(repository, "/")+1:]
}
