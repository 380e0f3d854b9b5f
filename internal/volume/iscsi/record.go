package iscsi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/checkpoint"
)

// databases are the directories of iscsiadm's records: of Debian and of Red Hat and SUSE.
var databases = []string{"/etc/iscsi", "/var/lib/iscsi"}

// endOfRecord is the last line of a record.
const endOfRecord = "# END RECORD"

// record is a record of iscsiadm: how a target is discovered at a portal, or a node.
type record struct {
	args []string // that select it
	// dir, address and name are its file in a database: DIR/ADDRESS/NAME, in which the number of a portal
	// group may follow the address, or DIR/ADDRESS.
	dir, address, name string
}

func (l login) discoveryRecord(portal string) record {
	return record{
		args: []string{"-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", l.Iface},
		dir:  "send_targets", address: address(portal), name: "st_config",
	}
}

func (l login) nodeRecord(portal string) record {
	return record{
		args: []string{"-m", "node", "-p", portal, "-T", l.Iqn, "-I", l.Iface},
		dir:  filepath.Join("nodes", l.Iqn), address: address(portal), name: l.Iface,
	}
}

// address is a portal as iscsiadm names directories.
func address(portal string) string {
	host, port, err := net.SplitHostPort(portal)
	if err != nil {
		return portal
	}
	return host + "," + port
}

// authenticate sets the CHAP credentials. Every user of the node can read the arguments of a program, so
// they are written to iscsiadm's record, which only root can read. Errors do not contain them.
func (l login) authenticate(ctx context.Context, r record, method string, keys []string) error {
	if _, err := l.iscsiadm(ctx, withArgs(r.args, "-o", "update", "-n", method, "-v", "CHAP")...); err != nil {
		return err
	}
	values := map[string]string{}
	for _, key := range keys {
		value := string(l.chap[key])
		if strings.ContainsFunc(value, unicode.IsControl) {
			return fmt.Errorf("set %s: the value has a control character", key)
		}
		if value != "" {
			values[key] = value
		}
	}
	files, err := l.files(r)
	if err != nil || len(values) == 0 {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("set CHAP credentials: iscsiadm's record for portal %s is not in %s; if its database is elsewhere, make one of these a link to it",
			r.address, strings.Join(l.databases(), " or "))
	}
	for _, file := range files {
		if err := writeRecord(file, keys, values); err != nil {
			return fmt.Errorf("set CHAP credentials: %w", err)
		}
	}
	return nil
}

func (l login) databases() []string {
	if l.deps.Databases != nil {
		return l.deps.Databases
	}
	return databases
}

// files returns the files of a record.
func (l login) files(r record) ([]string, error) {
	var found []string
	for _, database := range l.databases() {
		dir := filepath.Join(database, r.dir)
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("find iscsiadm's record: %w", err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.Name() != r.address && !strings.HasPrefix(e.Name(), r.address+",") {
				continue
			}
			if e.IsDir() {
				path = filepath.Join(path, r.name)
			}
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				found = append(found, path)
			}
		}
	}
	return found, nil
}

// writeRecord replaces settings of a record.
func writeRecord(path string, keys []string, values map[string]string) error {
	text, err := boundedio.ReadFile(path, boundedio.Small)
	if err != nil {
		return err
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		key, _, _ := strings.Cut(line, "=")
		if !slices.Contains(keys, strings.TrimSpace(key)) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	end := slices.Index(lines, endOfRecord)
	if end < 0 {
		return fmt.Errorf("read record %s: it has no end", path)
	}
	for _, key := range keys {
		if value := values[key]; value != "" {
			lines = slices.Insert(lines, end, key+" = "+value)
			end++
		}
	}
	return checkpoint.Replace(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}
