package download

import (
	"context"
	"os/exec"
	"time"
)

// systemSettings asks the Mac for the proxies of the network in use.
func systemSettings() (proxySettings, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, "/usr/sbin/scutil", "--proxy").Output()
	if err != nil {
		return proxySettings{}, false
	}
	return parseScutil(string(text)), true
}
