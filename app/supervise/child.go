package supervise

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// drain is how long a child's pipes are read on after its end: something that
// it has started may hold them.
const drain = time.Second

// child is a process and the pipes to it.
type child struct {
	cmd       *exec.Cmd
	nonce     string
	url       string // once it listens
	leash     *os.File
	words     *os.File // the child's standard output
	listening chan string
	exited    chan exit
}

// start launches a child. Its standard input is the leash: one line with the
// nonce, and then nothing until this process ends.
func start(l Launch, log io.Writer) (*child, error) {
	leashIn, leash, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("supervise: pipe: %w", err)
	}
	defer leashIn.Close()
	words, wordsOut, err := os.Pipe()
	if err != nil {
		leash.Close()
		return nil, fmt.Errorf("supervise: pipe: %w", err)
	}
	defer wordsOut.Close()

	c := &child{nonce: rand.Text(), leash: leash, words: words, listening: make(chan string, 1), exited: make(chan exit, 1)}
	tail := &tail{log: log}
	c.cmd = exec.Command(l.Path, l.Args...)
	c.cmd.Env, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = l.Env, leashIn, wordsOut, tail
	c.cmd.SysProcAttr = attributes()
	c.cmd.WaitDelay = drain
	if err := c.cmd.Start(); err != nil {
		c.close()
		return nil, fmt.Errorf("the engine could not be launched: %w", err)
	}
	// A pipe that nobody reads takes a line all the same.
	fmt.Fprintln(leash, c.nonce)
	go c.listen()
	go c.wait(tail)
	return c, nil
}

// listen takes the child's words: one, so far.
func (c *child) listen() {
	in := bufio.NewReader(io.LimitReader(c.words, 4096))
	line, err := in.ReadBytes('\n')
	var w word
	if err == nil && json.Unmarshal(line, &w) == nil && w.Nonce == c.nonce && w.Listening != "" {
		c.listening <- w.Listening
	}
	io.Copy(io.Discard, c.words) // a full pipe would block the child
}

func (c *child) wait(t *tail) {
	err := c.cmd.Wait()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) && !errors.Is(err, exec.ErrWaitDelay) {
		c.exited <- exit{err: err}
		return
	}
	c.exited <- exit{status: c.cmd.ProcessState.Sys().(syscall.WaitStatus), last: t.reason()}
}

func (c *child) terminate() { c.cmd.Process.Signal(syscall.SIGTERM) }

func (c *child) kill() { c.cmd.Process.Kill() }

func (c *child) close() {
	c.leash.Close()
	c.words.Close()
}

// exit is how a child ended.
type exit struct {
	status syscall.WaitStatus
	last   string // what it said last
	err    error
}

func (x exit) explain() Ended {
	switch {
	case x.err != nil:
		return Ended{Crash, x.err.Error()}
	case x.status.Signaled():
		reason := "the engine was ended by signal: " + x.status.Signal().String()
		if x.status.Signal() == syscall.SIGKILL {
			reason += " (out of memory?)"
		}
		return Ended{Crash, reason}
	}
	cause, ok := causes[x.status.ExitStatus()]
	if !ok {
		cause = Crash
	}
	if x.last == "" {
		return Ended{cause, fmt.Sprintf("the engine ended with status %d", x.status.ExitStatus())}
	}
	return Ended{cause, x.last}
}
