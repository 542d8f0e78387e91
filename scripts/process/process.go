// Package process runs calla serve as people do, as a process of its own, for
// the tests that look at it from outside.
//
// It is a module of its own, because those tests are: they bring clients and
// browsers that no user of calla should have to fetch.
package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// Patience is how long a start and a stop may take before a test gives up.
const Patience = 2 * time.Minute

// Binary returns the calla to test: the one that CALLA_BINARY names, or one
// built into dir from the repository at root.
func Binary(root, dir string) (string, error) {
	if bin := os.Getenv("CALLA_BINARY"); bin != "" {
		return filepath.Abs(bin)
	}
	bin := filepath.Join(dir, "calla")
	cmd := exec.Command("go", "build", "-o", bin, "./app")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build calla: %w\n%s", err, out)
	}
	return bin, nil
}

// Server is a running calla serve.
type Server struct {
	URL   string // of its root, without a slash at the end
	cmd   *exec.Cmd
	log   io.Writer
	ended chan error
}

var listening = regexp.MustCompile(`listening on (http://[^\s/]+)`)

// Start starts a server, has log take what it prints and waits until that holds
// an address.
func Start(log io.Writer, bin string, args ...string) (*Server, error) {
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
	s := &Server{cmd: cmd, log: log, ended: make(chan error, 1)}
	url := make(chan string, 1)
	go func() {
		s.follow(out, url)
		s.ended <- cmd.Wait()
	}()
	select {
	case s.URL = <-url:
		return s, nil
	case err := <-s.ended:
		return nil, fmt.Errorf("%s %v ended before it listened: %v", bin, args, err)
	case <-time.After(Patience):
		s.Kill()
		return nil, fmt.Errorf("%s %v printed no address in %v", bin, args, Patience)
	}
}

// follow copies what the process prints and sends the first address in it.
func (s *Server) follow(out io.ReadCloser, url chan<- string) {
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

// Interrupt stops the server as Ctrl-C does and returns an error where it did
// not end cleanly.
func (s *Server) Interrupt() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("interrupt calla: %w", err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("calla after an interrupt: %w, want exit status 0", err)
		}
		return nil
	case <-time.After(Patience):
		s.Kill()
		return errors.New("calla goes on after an interrupt")
	}
}

// Kill ends the process at once, and returns when it is gone.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	<-s.ended
}
