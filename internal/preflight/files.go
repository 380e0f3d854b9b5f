package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"

	"swiftlet/internal/certificate"
	"swiftlet/internal/config"
	"swiftlet/internal/image/credentialplugin"
	"swiftlet/internal/kubeapi"
	"swiftlet/internal/resource"
	"swiftlet/internal/server"
)

// directories checks that the kubelet can create the directories that it writes to.
func directories(cfg *config.Config) error {
	flags := &cfg.Flags
	errs := []error{about("--root-dir", creatable(flags.RootDir))}
	if *cfg.Kubelet.EnableServer && cfg.Kubelet.TLSCertFile == "" {
		errs = append(errs, about("--cert-dir", creatable(flags.CertDir)))
	}
	if flags.LockFile != "" {
		errs = append(errs, about("--lock-file", writable(filepath.Dir(flags.LockFile))))
	}
	return errors.Join(errs...)
}

// creatable returns an error if the directory neither exists nor can be created.
func creatable(dir string) error {
	for {
		err := writable(dir)
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return err
		}
		dir = filepath.Dir(dir)
	}
}

func writable(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return fmt.Errorf("%s is not writable: %w", dir, err)
	}
	return nil
}

// stateFiles checks the files that an earlier kubelet has left. The kubelet starts in spite of damage to
// most of them.
func stateFiles(cfg *config.Config) error {
	var errs []error
	for _, file := range resource.StateFiles {
		if err := file.Check(cfg.Flags.RootDir); err != nil && (file.IfDamaged == "" || !resource.IsDamaged(err)) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func kubeconfig(cfg *config.Config) error {
	flags, field := &cfg.Flags, "--kubeconfig"
	if flags.Kubeconfig == "" {
		return nil
	}
	if flags.BootstrapKubeconfig != "" {
		field = "--bootstrap-kubeconfig"
	}
	apiServer, err := connection(cfg)
	if err == nil {
		err = kubeapi.CheckTLS(apiServer)
	}
	return about(field, err)
}

func connection(cfg *config.Config) (*rest.Config, error) {
	flags, log := &cfg.Flags, slog.New(slog.DiscardHandler)
	if !cfg.Kubelet.RotateCertificates && flags.BootstrapKubeconfig == "" {
		_, apiServer, err := certificate.NewClientFiles(flags.Kubeconfig, log) // reads only
		return apiServer, err
	}
	return certificate.ClientConfig{
		Kubeconfig: flags.Kubeconfig, Bootstrap: flags.BootstrapKubeconfig, Dir: flags.CertDir, Renew: cfg.Kubelet.RotateCertificates,
	}.Check(time.Now(), log)
}

func certificates(cfg *config.Config) error {
	return server.CheckFiles(&cfg.Kubelet, cfg.Kubelet.ServerTLSBootstrap && cfg.Flags.Kubeconfig != "")
}

func credentialPlugins(cfg *config.Config) error {
	plugins, configured := credentialplugin.ConfigFrom(cfg)
	if !configured {
		return nil
	}
	settings, err := credentialplugin.Read(plugins.File, plugins.Tokens)
	if err != nil {
		return about("--image-credential-provider-config", err)
	}
	_, err = settings.Programs(plugins.Dir)
	return about("--image-credential-provider-bin-dir", err)
}
