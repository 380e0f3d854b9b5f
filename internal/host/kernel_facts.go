package host

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime returns when the machine booted, given the current time; zero if unknown.
func BootTime(now time.Time) time.Time {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(info.Uptime) * time.Second)
}

// AppArmorEnabled reports whether AppArmor is enabled in the kernel.
func AppArmorEnabled() bool {
	enabled, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return err == nil && strings.HasPrefix(string(enabled), "Y")
}
