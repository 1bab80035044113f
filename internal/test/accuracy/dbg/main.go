package main
import ("context";"fmt";"os";"github.com/otelcol-vllm/otelcol-vllm/internal/judge")
func main(){
 f,err:=os.Open(os.Args[1]); if err!=nil{panic(err)}
 p,err:=judge.Replay(context.Background(),f); if err!=nil{panic(err)}
 for _,l:=range p.Lines{
  c:=""; for _,x:=range l.Causes{c+=fmt.Sprintf(" %s/%s/%s",x.Name,x.Role[:1],x.Detail)}
  fmt.Printf("%3d s%d n=%d eff=%.2f %v | %s %d%s\n",l.Minute,l.Server,l.Requests,l.Effect,l.TrueCauses,l.Condition,l.Severity,c)
 }
 fmt.Println(p.Alarms)
}
