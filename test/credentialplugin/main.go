package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

func main() {
	notes := flag.String("notes", "", "file that gets the requests, one a line")
	logins := flag.String("logins", "", "file with the answer's field auth, as JSON")
	keep := flag.Duration("keep", 0, "how long the answer may be kept")
	flag.Parse()
	if err := answer(*notes, *logins, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "credentialplugin:", err)
		os.Exit(1)
	}
}

func answer(notes, logins string, keep time.Duration) error {
	request, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var asked api.CredentialProviderRequest
	if err := json.Unmarshal(request, &asked); err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	if err := note(notes, request); err != nil {
		return err
	}
	content, err := os.ReadFile(logins)
	if err != nil {
		return err
	}
	response := api.CredentialProviderResponse{
		TypeMeta:      metav1.TypeMeta{APIVersion: asked.APIVersion, Kind: "CredentialProviderResponse"},
		CacheKeyType:  api.RegistryPluginCacheKeyType,
		CacheDuration: &metav1.Duration{Duration: keep},
	}
	if err := json.Unmarshal(content, &response.Auth); err != nil {
		return fmt.Errorf("read logins: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(response)
}

// note adds a request to the file, which ends with a newline already.
func note(file string, request []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(request)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
