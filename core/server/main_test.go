package server

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the tests that leave a goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	}))
}
