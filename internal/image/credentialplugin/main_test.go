package credentialplugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// TestMain lets the test's own program be the plugin: what it does is in its environment.
func TestMain(m *testing.M) {
	if does := os.Getenv("PLUGIN"); does != "" {
		os.Exit(beAPlugin(does))
	}
	os.Exit(m.Run())
}

func beAPlugin(does string) int {
	request, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	note(request)
	switch does {
	case "fail":
		fmt.Fprintln(os.Stderr, "no luck "+strings.Repeat("x", 10*maxComplaint))
		return 3
	case "flood":
		_, _ = io.Copy(os.Stdout, endless{})
	case "hang", "leave a child":
		child := exec.Command(os.Args[0])
		child.Env, child.Stdout = []string{"PLUGIN=sleep"}, os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		note([]byte(fmt.Sprint(child.Process.Pid)))
		if does == "hang" {
			_ = child.Wait()
		}
	case "sleep":
		time.Sleep(time.Hour)
	}
	if does != "answer" && does != "leave a child" {
		fmt.Print(does)
		return 0
	}
	fmt.Print(answerTo(request))
	return 0
}

// answerTo opens the image's registry with the image's name, the arguments and the token.
func answerTo(request []byte) string {
	var asked api.CredentialProviderRequest
	if err := json.Unmarshal(request, &asked); err != nil {
		panic(err)
	}
	duration := ""
	if d := os.Getenv("DURATION"); d != "" {
		duration = `"cacheDuration":"` + d + `",`
	}
	return fmt.Sprintf(`{"kind":"CredentialProviderResponse","apiVersion":%q,"cacheKeyType":%q,%s"auth":{%q:{"username":%q,"password":%q}}}`,
		asked.APIVersion, os.Getenv("KIND"), duration, "*.example.com", strings.Join(os.Args[1:], " ")+asked.Image, os.Getenv("PASSWORD")+asked.ServiceAccountToken)
}

// note adds a line to the file that the test reads.
func note(line []byte) {
	file, err := os.OpenFile(os.Getenv("NOTES"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return // nobody wants to know
	}
	defer file.Close()
	fmt.Fprintf(file, "%s\n", bytes.TrimSpace(line))
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
