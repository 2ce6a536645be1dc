// The oldest kubectl for the real-client tests: the upstream command tree, and nothing of our own.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // registers the credential plugins
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	os.Exit(cli.Run(cmd.NewDefaultKubectlCommand()))
}
