package stories

var knees = []Knee{}
