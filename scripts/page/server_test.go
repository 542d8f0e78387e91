package page

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"time"
)

// server is a running calla serve.
type server struct {
	url   string // of its root, without a slash at the end
	cmd   *exec.Cmd
	log   io.Writer
	ended chan error
}

var listening = regexp.MustCompile(`listening on (http://[^\s/]+)`)

// patience is how long a start and a stop may take before a test gives up.
const patience = 2 * time.Minute

// serve starts a server, has log take what it prints and waits until that holds
// an address.
func serve(log io.Writer, bin string, args ...string) (*server, error) {
	cmd := exec.Command(bin, args...)
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	w.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	s := &server{cmd: cmd, log: log, ended: make(chan error, 1)}
	url := make(chan string, 1)
	go func() {
		s.follow(out, url)
		s.ended <- cmd.Wait()
	}()
	select {
	case s.url = <-url:
		return s, nil
	case err := <-s.ended:
		return nil, fmt.Errorf("%s %v ended before it listened: %v", bin, args, err)
	case <-time.After(patience):
		cmd.Process.Kill()
		<-s.ended
		return nil, fmt.Errorf("%s %v printed no address in %v", bin, args, patience)
	}
}

// follow copies what the process prints and sends the first address in it.
func (s *server) follow(out io.ReadCloser, url chan<- string) {
	defer out.Close()
	found := false
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadString('\n')
		io.WriteString(s.log, line)
		if m := listening.FindStringSubmatch(line); m != nil && !found {
			found = true
			url <- m[1]
		}
		if err != nil {
			return
		}
	}
}

// interrupt stops the server as Ctrl-C does and returns an error where it did
// not end cleanly.
func (s *server) interrupt() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("interrupt calla: %w", err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("calla after an interrupt: %w, want exit status 0", err)
		}
		return nil
	case <-time.After(patience):
		s.cmd.Process.Kill()
		<-s.ended
		return errors.New("calla goes on after an interrupt")
	}
}
