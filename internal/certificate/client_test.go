package certificate

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// place is where a node keeps its files.
type place struct {
	t *testing.T
	s *signer
	ClientConfig
}

func newPlace(t *testing.T) *place {
	dir := t.TempDir()
	return &place{t, newSigner(t), ClientConfig{
		NodeName:   "n",
		Kubeconfig: filepath.Join(dir, "kubelet.conf"),
		Bootstrap:  filepath.Join(dir, "bootstrap.conf"),
		Dir:        filepath.Join(dir, "pki"),
		Renew:      true,
	}}
}

func (p *place) write(path string, user *clientcmdapi.AuthInfo) {
	p.t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://api.example:6443", TLSServerName: "api", ProxyURL: "http://proxy.example"}
	config.AuthInfos["u"] = user
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		p.t.Fatal(err)
	}
}

// inline is a kubeconfig with a certificate inside.
func (p *place) inline(name string, life time.Duration) []byte {
	cert, key := p.s.pair(name, life)
	p.write(p.Kubeconfig, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
	return cert
}

func (p *place) token() { p.write(p.Bootstrap, &clientcmdapi.AuthInfo{Token: "t"}) }

func (p *place) open() (*Rotator, *rest.Config, error) {
	return NewClient(p.ClientConfig, (&kept{}).deps(p.s))
}

func (p *place) mustOpen() (*Rotator, *rest.Config) {
	p.t.Helper()
	r, base, err := p.open()
	if err != nil {
		p.t.Fatal(err)
	}
	if base.CertFile != "" || len(base.CertData) > 0 || base.BearerToken != "" || base.Host != "https://api.example:6443" {
		p.t.Errorf("connection settings %+v", base)
	}
	return r, base
}

func TestBootstrapWritesTheKubeconfig(t *testing.T) {
	for name, prepare := range map[string]func(p *place){
		"no kubeconfig":       func(*place) {},
		"an expired one":      func(p *place) { p.inline("n", -time.Minute) },
		"one without a pair":  func(p *place) { p.write(p.Kubeconfig, &clientcmdapi.AuthInfo{Token: "t"}) },
		"one that is garbage": func(p *place) { p.garbage(p.Kubeconfig) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.token()
			prepare(p)
			r, _ := p.mustOpen()
			if r.Current() != nil {
				t.Error("there is a certificate")
			}
			if at, known := r.due(); !known || !at.IsZero() {
				t.Errorf("to be requested at %v, %t", at, known)
			}
			written, err := clientcmd.LoadFromFile(p.Kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			pair := filepath.Join(p.Dir, "kubelet-client-current.pem")
			if user := written.AuthInfos["default-auth"]; user.ClientCertificate != pair || user.ClientKey != pair || user.Token != "" {
				t.Errorf("user %+v", user)
			}
			if c := written.Clusters["default-cluster"]; c.Server != "https://api.example:6443" || c.TLSServerName != "api" || c.ProxyURL != "http://proxy.example" {
				t.Errorf("cluster %+v", c)
			}
			if info, err := os.Stat(p.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("kubeconfig: %v %v", info.Mode(), err)
			}
			if used, err := p.credential(time.Now()); err != nil || used.BearerToken != "t" {
				t.Errorf("the request is not made with the token: %v", err)
			}
		})
	}
}

func (p *place) garbage(path string) {
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func TestValidKubeconfigNeedsNoBootstrap(t *testing.T) {
	p := newPlace(t) // kubeadm removes the file when the node has joined
	p.inline("n", time.Hour)
	r, _ := p.mustOpen()
	if r.valid() == nil {
		t.Error("its certificate is not used")
	}
	if at, _ := r.due(); at.After(time.Now()) {
		t.Errorf("a certificate that came from elsewhere is to be renewed only at %v", at)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "kubelet-client-current.pem")); err != nil {
		t.Error(err)
	}

	p = newPlace(t)
	p.Renew = false
	p.inline("n", time.Hour)
	r, _ = p.mustOpen()
	if at, _ := r.due(); r.valid() == nil || !at.Equal(r.Current().Leaf.NotAfter) {
		t.Errorf("without renewal: %s, next %v", r.describe(), at)
	}
	if _, err := os.Stat(p.Dir); err == nil {
		t.Error("without renewal it was put into the store")
	}
}

func TestStoredCertificateWins(t *testing.T) {
	p := newPlace(t)
	p.inline("n", time.Hour)
	first, _ := p.mustOpen()
	p.inline("n", time.Hour)
	second, _ := p.mustOpen()
	if !second.Current().Leaf.Equal(first.Current().Leaf) {
		t.Error("the certificate in the store is not used")
	}
}

func TestExpiredWithoutBootstrapGoesOn(t *testing.T) {
	p := newPlace(t)
	p.inline("n", -time.Minute)
	r, _ := p.mustOpen()
	if r.valid() != nil {
		t.Fatal("it is valid")
	}
	if _, err := p.credential(time.Now()); err == nil || !strings.Contains(err.Error(), `certificate of "system:node:n" expired at`) || !strings.Contains(err.Error(), "bootstrap.conf") {
		t.Errorf("it does not say what is wrong: %v", err)
	}
	fresh := p.inline("n", time.Hour)
	if used, err := p.credential(time.Now()); err != nil || string(used.CertData) != string(fresh) {
		t.Errorf("the replaced kubeconfig is not used: %v", err)
	}
}

func TestBadClientFiles(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(p *place)
		want    []string
	}{
		"neither":           {func(*place) {}, []string{"kubelet.conf", "bootstrap.conf"}},
		"broken bootstrap":  {func(p *place) { p.garbage(p.Bootstrap) }, []string{"kubelet.conf", "bootstrap kubeconfig cannot be used", "bootstrap.conf"}},
		"no kubeconfig":     {func(p *place) { p.Bootstrap = "" }, []string{"read kubeconfig", "kubelet.conf"}},
		"a directory":       {func(p *place) { p.Bootstrap = p.t.TempDir() }, []string{"is a directory"}},
		"key of another":    {func(p *place) { p.Bootstrap = ""; p.mismatch() }, []string{"kubelet.conf", "private key does not match public key"}},
		"unwritable folder": {func(p *place) { p.token(); p.Kubeconfig = "/proc/none/kubelet.conf" }, []string{"write kubeconfig", "/proc/none"}},
	} {
		p := newPlace(t)
		c.prepare(p)
		_, _, err := p.open()
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", name, err, want)
			}
		}
	}
}

func (p *place) mismatch() {
	cert, _ := p.s.pair("n", time.Hour)
	_, key := p.s.pair("n", time.Hour)
	p.write(p.Kubeconfig, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

func TestFilesFollowTheKubeconfig(t *testing.T) {
	p := newPlace(t)
	log := slog.New(slog.DiscardHandler)
	p.write(p.Kubeconfig, &clientcmdapi.AuthInfo{Token: "t"})
	if files, base, err := NewFiles(p.Kubeconfig, log); files != nil || err != nil || base.BearerToken != "t" {
		t.Errorf("kubeconfig without a certificate: %v %v", files, err)
	}
	p.mismatch()
	if _, _, err := NewFiles(p.Kubeconfig, log); err == nil || !strings.Contains(err.Error(), "private key does not match") {
		t.Errorf("kubeconfig with another's key: %v", err)
	}

	p.inline("first", time.Hour)
	files, _, err := NewFiles(p.Kubeconfig, log)
	if err != nil {
		t.Fatal(err)
	}
	<-files.Ready()
	shows := func(want string) {
		t.Helper()
		if got := files.Current().Leaf.Subject.CommonName; got != "system:node:"+want {
			t.Errorf("shows %s, want %s", got, want)
		}
	}
	shows("first")
	p.inline("second", time.Hour)
	shows("second")
	p.garbage(p.Kubeconfig)
	shows("second")

	cert, key := p.s.pair("third", time.Hour)
	pair := filepath.Join(t.TempDir(), "pair.pem")
	if err := os.WriteFile(pair, append(cert, key...), 0o600); err != nil {
		t.Fatal(err)
	}
	p.write(p.Kubeconfig, &clientcmdapi.AuthInfo{ClientCertificate: pair, ClientKey: pair})
	shows("third")
	if files, _, err = NewFiles(p.Kubeconfig, log); err != nil {
		t.Fatal(err)
	}
	cert, key = p.s.pair("fourth", time.Hour)
	if err := os.WriteFile(pair, append(cert, key...), 0o600); err != nil {
		t.Fatal(err)
	}
	shows("fourth")
}
