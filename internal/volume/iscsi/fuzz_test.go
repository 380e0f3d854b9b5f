package iscsi

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// FuzzDiskInfo: a file or a directory name that others have changed is disk info with a portal and a target,
// or an error.
func FuzzDiskInfo(f *testing.F) {
	f.Add([]byte(`{"Portals":["192.0.2.1:3260"],"Iqn":"iqn.2026-11.example:a","Lun":"0","Iface":"default"}`), "192.0.2.1:3260-iqn.2026-11.example:a-lun-0")
	f.Add([]byte(`{"Portals":[]}`), "-iqn.-lun-")
	f.Add([]byte("x"), "a-eui.-lun--lun-")
	f.Fuzz(func(t *testing.T, content []byte, name string) {
		if name == "" || name == "." || name == ".." || filepath.Base(name) != name || len(name) > 255 {
			return
		}
		dir := filepath.Join(t.TempDir(), interfacePrefix+"default", name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return // not a name of a file
		}
		if err := os.WriteFile(filepath.Join(dir, infoFile), content, 0o600); err != nil {
			t.Fatal(err)
		}
		p := &Plugin{deps: Deps{Log: slog.New(slog.DiscardHandler)}}
		info, err := p.readInfo(dir)
		if err == nil && (len(info.Portals) == 0 || info.Iqn == "") {
			t.Errorf("incomplete info was accepted: %+v", info)
		}
	})
}
