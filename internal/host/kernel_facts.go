package host

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime is when the machine started, given the time now; zero where the kernel does not say.
func BootTime(now time.Time) time.Time {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(info.Uptime) * time.Second)
}

// AppArmorEnabled reports whether the kernel confines by AppArmor profiles.
func AppArmorEnabled() bool {
	enabled, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return err == nil && strings.HasPrefix(string(enabled), "Y")
}
