package csi

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// FuzzVolumeData: whatever a crash or another program left in the file, the volume has complete data or an
// error, and data that is written can be read.
func FuzzVolumeData(f *testing.F) {
	f.Add([]byte(`{"driverName":"d","volumeHandle":"h","specVolID":"v","volumeLifecycleMode":"Persistent"}`))
	f.Add([]byte(`{"driverName":"d"}`))
	f.Add([]byte("{\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, volumeDataFile), content, 0o600); err != nil {
			t.Fatal(err)
		}
		p := &Plugin{deps: Deps{Log: slog.New(slog.DiscardHandler)}}
		data, ok, err := p.readVolumeData(dir)
		if ok == (err != nil) {
			t.Fatalf("ok is %v with error %v", ok, err)
		}
		if !ok {
			return
		}
		if data.Driver == "" || data.Handle == "" {
			t.Errorf("incomplete data was accepted: %+v", data)
		}
		if err := data.write(dir); err != nil {
			t.Fatal(err)
		}
		if again, ok, err := p.readVolumeData(dir); !ok || err != nil || again != data {
			t.Errorf("read %+v, %v after writing %+v", again, err, data)
		}
	})
}
