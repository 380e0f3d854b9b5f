package mounts

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestFileLabel(t *testing.T) {
	write := func(dir, file, text string) {
		t.Helper()
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	write(dir, "config", "# SELINUXTYPE=other\nSELINUX=enforcing\nSELINUXTYPE=mls\n")
	write(dir, "mls/contexts/lxc_contexts", `process = "system_u:system_r:container_t:s0"
content = "system_u:object_r:virt_var_lib_t:s0"
file = "system_u:object_r:container_file_t:s0"
ro_file="system_u:object_r:container_ro_file_t:s0"
`)
	for name, c := range map[string]struct {
		options *v1.SELinuxOptions
		want    string
	}{
		"no options":            {},
		"no level":              {options: &v1.SELinuxOptions{Type: "spc_t"}},
		"level":                 {options: &v1.SELinuxOptions{Level: "s0:c1,c2"}, want: "system_u:object_r:container_file_t:s0:c1,c2"},
		"user":                  {options: &v1.SELinuxOptions{User: "user_u", Level: "s0"}, want: "user_u:object_r:container_file_t:s0"},
		"role and type ignored": {options: &v1.SELinuxOptions{Role: "r", Type: "t", Level: "s0"}, want: "system_u:object_r:container_file_t:s0"},
	} {
		if got, err := (SELinuxPolicy{dir}).FileLabel(c.options); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if got, err := (SELinuxPolicy{t.TempDir()}).FileLabel(&v1.SELinuxOptions{Level: "s0"}); err == nil {
		t.Errorf("without a policy: %q", got)
	}
}
