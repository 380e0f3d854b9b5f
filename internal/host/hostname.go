package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Hostname returns the override, or else the machine's host name, in lower case.
func Hostname(override string) (string, error) {
	name := override
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return "", fmt.Errorf("read host name: %w", err)
		}
	}
	if name = strings.ToLower(strings.TrimSpace(name)); name == "" {
		return "", errors.New("read host name: empty; set --hostname-override")
	}
	return name, nil
}
