package mounts

import (
	"errors"
	"strings"
	"testing"
)

func TestLabelsFiles(t *testing.T) {
	const sys = "22 1 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
	const selinux = "30 22 0:25 / /sys/fs/selinux rw,noexec shared:9 - selinuxfs selinuxfs rw\n"
	for name, c := range map[string]struct {
		table, label string
		want         bool
	}{
		"no selinuxfs":     {table: sys, label: "unconfined\n"},
		"policy loaded":    {table: sys + selinux, label: "system_u:system_r:kubelet_t:s0\x00", want: true},
		"no policy loaded": {table: sys + selinux, label: "kernel\x00"},
		"read-only selinuxfs": {
			table: sys + strings.Replace(selinux, "rw,noexec", "ro,noexec", 1), label: "system_u:system_r:container_t:s0"},
	} {
		got, err := labelsFiles(strings.NewReader(c.table), func() ([]byte, error) { return []byte(c.label), nil })
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	broken := errors.New("broken")
	if _, err := labelsFiles(strings.NewReader(selinux), func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("with a label that cannot be read: %v", err)
	}
}
