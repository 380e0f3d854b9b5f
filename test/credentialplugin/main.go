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
	requestLog := flag.String("notes", "", "file to append requests to, one per line")
	logins := flag.String("logins", "", "file with the field auth of the response, as JSON")
	cacheFor := flag.Duration("keep", 0, "cacheDuration of the response")
	flag.Parse()
	if err := respond(*requestLog, *logins, *cacheFor); err != nil {
		fmt.Fprintln(os.Stderr, "credentialplugin:", err)
		os.Exit(1)
	}
}

func respond(requestLog, logins string, cacheFor time.Duration) error {
	request, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var parsed api.CredentialProviderRequest
	if err := json.Unmarshal(request, &parsed); err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	if err := appendRequest(requestLog, request); err != nil {
		return err
	}
	content, err := os.ReadFile(logins)
	if err != nil {
		return err
	}
	response := api.CredentialProviderResponse{
		TypeMeta:      metav1.TypeMeta{APIVersion: parsed.APIVersion, Kind: "CredentialProviderResponse"},
		CacheKeyType:  api.RegistryPluginCacheKeyType,
		CacheDuration: &metav1.Duration{Duration: cacheFor},
	}
	if err := json.Unmarshal(content, &response.Auth); err != nil {
		return fmt.Errorf("read logins: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(response)
}

// appendRequest appends a request, which ends with a newline, to the file.
func appendRequest(file string, request []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(request)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
