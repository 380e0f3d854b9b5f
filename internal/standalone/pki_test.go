package standalone

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPKI(t *testing.T) {
	p := Paths{root: t.TempDir(), run: t.TempDir(), bundle: "/bundle"}
	if err := p.makeDirs(); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	ensure := func(node string, at time.Time) map[string]*x509.Certificate {
		t.Helper()
		if err := ensurePKI(p, node, at); err != nil {
			t.Fatal(err)
		}
		certificates := map[string]*x509.Certificate{}
		for _, name := range []string{"ca", "serving", "admin"} {
			pair, err := tls.LoadX509KeyPair(p.pki(name+".crt"), p.pki(name+".key"))
			if err != nil {
				t.Fatal(err)
			}
			certificates[name] = pair.Leaf
		}
		return certificates
	}
	first := ensure("node", now)
	for file, usage := range map[string]x509.ExtKeyUsage{"serving": x509.ExtKeyUsageServerAuth, "admin": x509.ExtKeyUsageClientAuth} {
		roots := x509.NewCertPool()
		roots.AddCert(first["ca"])
		if _, err := first[file].Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, host := range []string{"node", "localhost", "127.0.0.1"} {
		if err := first["serving"].VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	files, err := os.ReadDir(filepath.Dir(p.pki("x")))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, error %v; want 0600", f.Name(), info.Mode(), err)
		}
	}

	kept := ensure("node", now.Add(24*time.Hour))
	renamed := ensure("other", now.Add(24*time.Hour))
	late := ensure("other", now.Add(leafLife))
	for _, c := range []struct {
		what  string
		a, b  *x509.Certificate
		equal bool
	}{
		{"CA is kept a day later", first["ca"], kept["ca"], true},
		{"client certificate is kept a day later", first["admin"], kept["admin"], true},
		{"new node name needs a new serving certificate", kept["serving"], renamed["serving"], false},
		{"client certificate is kept with a new node name", kept["admin"], renamed["admin"], true},
		{"client certificate is renewed before it expires", renamed["admin"], late["admin"], false},
		{"CA is kept when its certificates are renewed", first["ca"], late["ca"], true},
	} {
		if c.a.Equal(c.b) != c.equal {
			t.Errorf("%s: equal %v, want %v", c.what, !c.equal, c.equal)
		}
	}
}
