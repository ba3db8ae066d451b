"""Teams of the world under the names that sites give them, and teams that are easily taken for each other.

Written from general lists of teams, not from config/teams.yaml: many of these variants are in no table of aliases.
Each line is one team: its usual name, then other names of it.
"""

from __future__ import annotations

NATIONS = """
Ivory Coast; Côte d'Ivoire; Cote dIvoire
South Korea; Korea Republic; S. Korea
North Korea; Korea DPR; N. Korea
United States; USA; United States of America
Iran; IR Iran
China; China PR
Czech Republic; Czechia
Turkey; Türkiye; Turkiye
Cape Verde; Cabo Verde; Cape Verde Islands
Bosnia and Herzegovina; Bosnia & Herzegovina; Bosnia-Herzegovina
North Macedonia; N. Macedonia; FYR Macedonia
Republic of Ireland; Rep. of Ireland; Ireland Republic
Netherlands; Holland; The Netherlands
United Arab Emirates; UAE; U.A.E.
Trinidad and Tobago; Trinidad & Tobago; Trinidad-Tobago
Antigua and Barbuda; Antigua & Barbuda
São Tomé and Príncipe; Sao Tome & Principe; Sao Tome and Principe
Curaçao; Curacao
Eswatini; Swaziland
Myanmar; Burma
Timor-Leste; East Timor; Timor Leste
Kyrgyzstan; Kyrgyz Republic
Hong Kong; Hong Kong, China; HongKong
Chinese Taipei; Taiwan
Brazil; Brasil
Saudi Arabia; S. Arabia
New Zealand; N. Zealand; NZ
South Africa; S. Africa
Northern Ireland; N. Ireland
Papua New Guinea; PNG; Papua N. Guinea
Vietnam; Viet Nam
Gambia; The Gambia
Bahamas; The Bahamas
Central African Republic; Central African Rep.; CAR
DR Congo; Congo DR; Democratic Republic of the Congo
Congo; Congo-Brazzaville; Republic of the Congo
St Kitts and Nevis; Saint Kitts and Nevis; St. Kitts & Nevis
St Lucia; Saint Lucia; St. Lucia
St Vincent and the Grenadines; St. Vincent & the Grenadines; Saint Vincent and the Grenadines
Guinea-Bissau; Guinea Bissau
Equatorial Guinea; Eq. Guinea; Equat. Guinea
Dominican Republic; Dominican Rep.
Faroe Islands; Faroe Isl.; Faroes
Solomon Islands; Solomon Isl.
Cayman Islands; Cayman Isl.
Burkina Faso; Burkina-Faso
Sierra Leone; S. Leone
Costa Rica; C. Rica
Sri Lanka; Sri-Lanka
"""

# Countries with one usual name; their codes are those that sites show in small tables.
CODES = """
Argentina ARG, Australia AUS, Austria AUT, Belgium BEL, Bolivia BOL, Bulgaria BUL, Cameroon CMR, Canada CAN, Chile
CHI, Colombia COL, Croatia CRO, Denmark DEN, Ecuador ECU, Egypt EGY, Estonia EST, Finland FIN, France FRA, Georgia
GEO, Germany GER, Ghana GHA, Greece GRE, Honduras HON, Hungary HUN, Iceland ISL, Israel ISR, Italy ITA, Jamaica JAM,
Japan JPN, Jordan JOR, Kenya KEN, Latvia LVA, Lithuania LTU, Mali MLI, Malta MLT, Mexico MEX, Moldova MDA, Morocco
MAR, Nigeria NGA, Norway NOR, Panama PAN, Paraguay PAR, Peru PER, Poland POL, Portugal POR, Qatar QAT, Romania ROU,
Senegal SEN, Serbia SRB, Slovakia SVK, Slovenia SVN, Spain ESP, Sweden SWE, Switzerland SUI, Tunisia TUN, Uganda UGA,
Ukraine UKR, Uruguay URU, Uzbekistan UZB, Venezuela VEN, Zambia ZAM
"""

ABBREVIATED = """
Manchester United; Man Utd; Man United; Manchester Utd
Manchester City; Man City; Manchester C.
Nottingham Forest; Nottm Forest; Nott'm Forest; N. Forest
Sheffield Wednesday; Sheff Wed; Sheffield Wed
Sheffield United; Sheff Utd; Sheffield Utd
Wolverhampton Wanderers; Wolves; Wolverhampton
Brighton & Hove Albion; Brighton; Brighton and Hove Albion
West Bromwich Albion; West Brom; WBA
Queens Park Rangers; QPR
Tottenham Hotspur; Tottenham; Spurs
Newcastle United; Newcastle Utd; Newcastle
West Ham United; West Ham Utd; West Ham
Leeds United; Leeds Utd; Leeds
Borussia Dortmund; B. Dortmund; Bor. Dortmund; BVB
Borussia Mönchengladbach; Borussia M'gladbach; M'gladbach; Bor. Mönchengladbach
Eintracht Frankfurt; E. Frankfurt; Eintr. Frankfurt
Paris Saint-Germain; PSG; Paris SG; Paris St. Germain
Atlético Madrid; Atl. Madrid; Atletico de Madrid
Athletic Bilbao; Ath. Bilbao; Athletic Club
Real Sociedad; R. Sociedad; Real Soc.
Deportivo La Coruña; Dep. La Coruña; Deportivo
Rayo Vallecano; Rayo; R. Vallecano
Atlético Mineiro; Atlético-MG; Atl. Mineiro
Athletico Paranaense; Athletico-PR; Atl. Paranaense
Atlético Goianiense; Atlético-GO; Atl. Goianiense
América Mineiro; América-MG; America Mineiro
Independiente Medellín; Ind. Medellín; Independ. Medellin
Independiente Santa Fe; Ind. Santa Fe; Santa Fe
Atlético Nacional; Atl. Nacional
Deportes Tolima; Dep. Tolima
Deportivo Táchira; Dep. Táchira; Deportivo Tachira
Universidad Católica; Univ. Católica; U. Católica
Universidad de Chile; Univ. de Chile; U. de Chile
Estudiantes de La Plata; Estudiantes LP; Estudiantes; Est. La Plata
Gimnasia La Plata; Gimnasia LP; Gimn. La Plata
Defensa y Justicia; Def. y Justicia; Defensa Justicia
Central Córdoba; Ctral Córdoba; Central Cordoba
Argentinos Juniors; Argentinos Jrs; Arg. Juniors
Boca Juniors; Boca Jrs; Boca
Newell's Old Boys; Newells Old Boys; Newell's
New York City FC; NYCFC; New York City
Los Angeles FC; LAFC
LA Galaxy; Los Angeles Galaxy; L.A. Galaxy
San Jose Earthquakes; S.J. Earthquakes; San Jose Earthq.
Philadelphia Union; Phila. Union; Philadelphia
Inter Miami; Inter Miami CF
Western Sydney Wanderers; W. Sydney Wanderers; Western Sydney
Central Coast Mariners; C. Coast Mariners; Central Coast
Kaizer Chiefs; K. Chiefs
Mamelodi Sundowns; Mam. Sundowns
Ulsan Hyundai; Ulsan HD; Ulsan
Sanfrecce Hiroshima; S. Hiroshima; Sanf. Hiroshima
Yokohama F. Marinos; Yokohama FM; Yokohama F Marinos
Kawasaki Frontale; Kawasaki F.
Partizan Belgrade; Part. Belgrade; Partizan Beograd
Real Salt Lake; R. Salt Lake; RSL
Crystal Palace; C. Palace
Blackburn Rovers; Blackburn R.; Blackburn
Bolton Wanderers; Bolton W.; Bolton Wand.
Preston North End; Preston NE; Preston
"""

ACCENTED = """
Bayern München; Bayern Munich; FC Bayern München; Bayern Muenchen
1. FC Köln; FC Köln; Cologne; 1. FC Koeln
1. FC Nürnberg; Nürnberg; Nuremberg; 1. FC Nuernberg
Fortuna Düsseldorf; Fortuna Duesseldorf; F. Düsseldorf
Greuther Fürth; Greuther Fuerth; SpVgg Greuther Fürth
Preußen Münster; Preussen Muenster; Preussen Munster
Brøndby IF; Brondby; Brøndby
FC København; FC Copenhagen; København; Koebenhavn
FC Nordsjælland; Nordsjaelland; FC Nordsjaelland
Bodø/Glimt; Bodo/Glimt; Bodoe/Glimt
Tromsø IL; Tromso; Tromsoe
Malmö FF; Malmo FF; Malmö
IFK Göteborg; IFK Gothenburg; Goteborg
Djurgårdens IF; Djurgardens IF; Djurgården
Hammarby IF; Hammarby
Örebro SK; Orebro; Örebro
Legia Warszawa; Legia Warsaw
Śląsk Wrocław; Slask Wroclaw
Górnik Zabrze; Gornik Zabrze
Łódź KS; Lodz KS
Jagiellonia Białystok; Jagiellonia Bialystok
Wisła Kraków; Wisla Krakow; Wisla Cracow
Raków Częstochowa; Rakow Czestochowa
Slavia Praha; Slavia Prague; SK Slavia Praha
Sparta Praha; Sparta Prague; AC Sparta Praha
Viktoria Plzeň; Viktoria Plzen; FC Viktoria Plzen
Baník Ostrava; Banik Ostrava
Slovan Bratislava; ŠK Slovan Bratislava; SK Slovan Bratislava
Žilina; MŠK Žilina; Zilina
Ferencváros; Ferencvaros; Ferencvárosi TC
Újpest; Ujpest; Újpest FC
Beşiktaş; Besiktas; Beşiktaş JK
Fenerbahçe; Fenerbahce; Fenerbahçe SK
Galatasaray; Galatasaray SK; Galatasaray Istanbul
Kasımpaşa; Kasimpasa
Göztepe; Goztepe; Göztepe SK
Gençlerbirliği; Genclerbirligi
São Paulo; Sao Paulo; São Paulo FC
Grêmio; Gremio; Grêmio FBPA
Criciúma; Criciuma; Criciúma EC
Avaí; Avai; Avaí FC
Goiás; Goias; Goiás EC
Ceará; Ceara; Ceará SC
Cuiabá; Cuiaba; Cuiabá EC
Peñarol; Penarol; CA Peñarol
Vélez Sarsfield; Velez Sarsfield; CA Vélez Sarsfield
Colón; Colon; CA Colón
Unión de Santa Fe; Union de Santa Fe; Unión Santa Fe
Huracán; Huracan; CA Huracán
Lanús; Lanus; CA Lanús
Alavés; Alaves; Deportivo Alavés
Almería; Almeria; UD Almería
Cádiz; Cadiz; Cádiz CF
Málaga; Malaga; Málaga CF
Leganés; Leganes; CD Leganés
Córdoba; Cordoba; Córdoba CF
Marítimo; Maritimo; CS Marítimo
Académica; Academica; Académica de Coimbra
Famalicão; Famalicao; FC Famalicão
Saint-Étienne; Saint-Etienne; St. Etienne; AS Saint-Étienne
Nîmes; Nimes; Nîmes Olympique
Atlético Tucumán; Atletico Tucuman; Atl. Tucumán
Querétaro; Queretaro; Querétaro FC
León; Leon; Club León
Mazatlán; Mazatlan; Mazatlán FC
Atlético San Luis; Atletico San Luis; Atl. San Luis
"""

TRANSLITERATED = """
Dynamo Kyiv; Dinamo Kiev; Динамо Киев; Dynamo Kiev
Shakhtar Donetsk; Shakhtyor Donetsk; Шахтар Донецьк; Shakhter Donetsk
Dnipro-1; Dnepr-1; SK Dnipro-1
Zorya Luhansk; Zarya Lugansk; Зоря Луганськ; Zorya Lugansk
Metalist Kharkiv; Metallist Kharkov; Металіст Харків
Karpaty Lviv; Karpaty Lvov; Карпати Львів
Chornomorets Odesa; Chernomorets Odessa; Chornomorets Odessa
Vorskla Poltava; Ворскла Полтава; Worskla Poltawa
Oleksandriya; Alexandriya; Oleksandria
Kolos Kovalivka; Kolos Kovalevka; Колос Ковалівка
Spartak Moscow; Spartak Moskva; Спартак Москва; Spartak Moskau
CSKA Moscow; CSKA Moskva; ЦСКА Москва; PFC CSKA Moscow
Lokomotiv Moscow; Lokomotiv Moskva; Локомотив Москва; Lokomotive Moscow
Dynamo Moscow; Dinamo Moscow; Динамо Москва; Dinamo Moskva
Zenit St Petersburg; Zenit Saint Petersburg; Zenit; Zenit St. Petersburg
Krylia Sovetov; Krylya Sovetov; Крылья Советов; Krylia Sovetov Samara
Rubin Kazan; Рубин Казань; Rubin Kasan
Akhmat Grozny; Ahmat Grozny; Ахмат Грозный; Akhmat Groznyi
Khimki; Himki; Химки; FC Khimki
Ural Yekaterinburg; Ural Ekaterinburg; Урал Екатеринбург
Orenburg; FC Orenburg; Оренбург
Krasnodar; FC Krasnodar; Краснодар
Fakel Voronezh; Факел Воронеж; Fakel Voronesh
Torpedo Moscow; Torpedo Moskva; Торпедо Москва
Arsenal Tula; Арсенал Тула
Nizhny Novgorod; Nizhniy Novgorod; Pari Nizhny Novgorod
Dinamo Minsk; Dynamo Minsk; Динамо Минск
BATE Borisov; БАТЭ Борисов; BATE Barysaw
Shakhtyor Soligorsk; Shakhter Soligorsk; Шахтёр Солигорск; Shakhtar Soligorsk
Torpedo Zhodino; Torpedo Zhodzina; Торпедо Жодино
Neman Grodno; Нёман Гродно; Nyoman Grodno
Shakhter Karagandy; Shakhtyor Karaganda; Shakhtar Karagandy
Kairat Almaty; Qairat Almaty; Кайрат Алматы
Tobol Kostanay; Tobyl Kostanay; Тобол Костанай
Astana; FC Astana; Астана
Pakhtakor Tashkent; Paxtakor Tashkent; Пахтакор Ташкент
Nasaf Qarshi; Nasaf Karshi; Насаф Карши
Dinamo Tbilisi; Dynamo Tbilisi; Динамо Тбилиси
Torpedo Kutaisi; Торпедо Кутаиси
Ararat-Armenia; Ararat Armenia; Арарат-Армения
Pyunik Yerevan; Pyunik; Пюник Ереван; Pjunik Jerewan
Qarabağ; Qarabag; Karabakh; Qarabag Agdam
Neftçi Baku; Neftchi Baku; Neftci Baku; Нефтчи Баку
Levski Sofia; Левски София; Levski Sofija
CSKA Sofia; ЦСКА София; CSKA Sofija
Ludogorets Razgrad; Ludogorez Rasgrad; Лудогорец Разград
Botev Plovdiv; Ботев Пловдив
Lokomotiv Plovdiv; Lokomotive Plovdiv; Локомотив Пловдив
Crvena Zvezda; Red Star Belgrade; Црвена звезда; Crvena zvezda Beograd
Partizan; Partizan Beograd; Партизан; FK Partizan
Vojvodina; Војводина; Vojvodina Novi Sad
Čukarički; Cukaricki; Чукарички
Radnički Niš; Radnicki Nis; Раднички Ниш
Vardar Skopje; Вардар Скопје; Vardar
Olympiacos; Olympiakos; Olympiakos Piraeus; Ολυμπιακός
Panathinaikos; Panathinaïkos; Παναθηναϊκός; Panathinaikos Athens
AEK Athens; AEK; ΑΕΚ Αθήνα; AEK Athen
PAOK; ΠΑΟΚ; PAOK Thessaloniki; PAOK Salonika
Aris Thessaloniki; Aris; Άρης Θεσσαλονίκη; Aris Salonika
Panetolikos; Παναιτωλικός
Al-Hilal; Al Hilal; Al-Hilal SFC
Al-Nassr; Al Nassr; Al-Nasr; Al Nasr Riyadh
Al-Ittihad; Al Ittihad; Ittihad Jeddah
Al-Ettifaq; Al Ettifaq; Al-Ittifaq
Al-Shabab; Al Shabab; Alshabab
Al-Faisaly; Al Faisaly; Al-Faysali
Al-Wehdat; Al Wihdat; Al-Wahdat
Al Sadd; Al-Sadd; Alsadd
Al-Rayyan; Al Rayyan; Al-Rayan
Zamalek; El Zamalek; Zamalek SC
Espérance de Tunis; Esperance Tunis; ES Tunis
Raja Casablanca; Raja CA; Radja Casablanca
Hapoel Be'er Sheva; Hapoel Beer Sheva; Hapoel Beer-Sheva
Maccabi Tel Aviv; Makkabi Tel Aviv; Maccabi Tel-Aviv
Beitar Jerusalem; Betar Jerusalem
Guangzhou; Guangzhou FC
Persepolis; Perspolis; Persepolis Tehran
Esteghlal; Esteqlal; Esteghlal Tehran
"""

SPONSORED = """
RB Leipzig; RasenBallsport Leipzig; Red Bull Leipzig; Leipzig
Bayer Leverkusen; Bayer 04 Leverkusen; Leverkusen; B. Leverkusen
Red Bull Salzburg; FC Salzburg; RB Salzburg; Salzburg
Red Bull Bragantino; Bragantino; RB Bragantino
PSV Eindhoven; PSV; Philips SV Eindhoven
İstanbul Başakşehir; Medipol Başakşehir; RAMS Basaksehir; Basaksehir
Antalyaspor; Fraport TAV Antalyaspor; Bitexen Antalyaspor
Alanyaspor; Corendon Alanyaspor
Rizespor; Çaykur Rizespor
Kayserispor; Mondihome Kayserispor; Yukatel Kayserispor
Hatayspor; Atakaş Hatayspor
Konyaspor; TÜMOSAN Konyaspor; Arabam Konyaspor
Pendikspor; Siltaş Yapı Pendikspor
Sturm Graz; SK Puntigamer Sturm Graz; SK Sturm Graz
SCR Altach; CASHPOINT SCR Altach; Rheindorf Altach
WSG Tirol; WSG Swarovski Tirol
TSG Hoffenheim; 1899 Hoffenheim; TSG 1899 Hoffenheim; Hoffenheim
FC Schalke 04; Schalke; Schalke 04
1. FSV Mainz 05; Mainz 05; Mainz; FSV Mainz
Hannover 96; Hannover; Hanover 96
SV Darmstadt 98; Darmstadt; Darmstadt 98
1860 München; TSV 1860 München; 1860 Munich
VfL Wolfsburg; Wolfsburg
VfB Stuttgart; Stuttgart
SC Freiburg; Freiburg
FC Augsburg; Augsburg
Parma; Parma Calcio 1913; Parma Calcio
Genoa; Genoa CFC
Cagliari; Cagliari Calcio
Bologna; Bologna FC 1909; Bologna FC
Lecce; US Lecce
Udinese; Udinese Calcio
Napoli; SSC Napoli; Naples
Lazio; SS Lazio
Como; Como 1907; Calcio Como
Shandong Taishan; Shandong Luneng Taishan; Shandong Luneng
"""

CITIES = """
Inter Milan; Internazionale; Inter; Internazionale Milano
AC Milan; Milan; A.C. Milan
AS Roma; Roma; Rome
Juventus; Juventus Turin; Juve
Torino; Torino FC; Turin
Hellas Verona; Verona; Hellas Verona FC
Atalanta; Atalanta BC; Atalanta Bergamo
Fiorentina; ACF Fiorentina
Sevilla; Sevilla FC; Seville
Real Betis; Betis; Real Betis Sevilla
Celta Vigo; Celta de Vigo; RC Celta
Real Valladolid; Valladolid
Espanyol; RCD Espanyol; Espanyol Barcelona
Mallorca; RCD Mallorca; Real Mallorca
Osasuna; CA Osasuna; Osasuna Pamplona
Sporting CP; Sporting Lisbon; Sporting; Sporting Clube de Portugal
Benfica; SL Benfica; Benfica Lisbon; Benfica Lisboa
Porto; FC Porto
Braga; SC Braga; Sporting Braga
Vitória Guimarães; Vitória SC; Vitoria de Guimaraes
Ajax; Ajax Amsterdam; AFC Ajax
Feyenoord; Feyenoord Rotterdam
AZ Alkmaar; AZ
FC Utrecht; Utrecht
Club Brugge; Club Bruges; Club Brugge KV; FC Bruges
Anderlecht; RSC Anderlecht; Anderlecht Brussels
Standard Liège; Standard Liege; Standard de Liège
KRC Genk; Racing Genk; Genk
KAA Gent; Gent; AA Gent; Ghent
Royal Antwerp; Antwerp; Royal Antwerp FC
Olympique Lyonnais; Lyon; Olympique Lyon
Olympique de Marseille; Marseille; Olympique Marseille
OGC Nice; Nice
Stade Rennais; Rennes; Stade Rennes
Stade de Reims; Reims; Stade Reims
LOSC Lille; Lille; Lille OSC
RC Lens; Lens; Racing Club de Lens
AS Monaco; Monaco
Montpellier; Montpellier HSC
Toulouse; Toulouse FC
Rapid Wien; Rapid Vienna; SK Rapid Wien
Austria Wien; Austria Vienna; FK Austria Wien
BSC Young Boys; Young Boys; Young Boys Bern
FC Basel; Basel; FC Basle
FC Zürich; Zurich; FC Zurich
Servette; Servette FC; Servette Geneva
Celtic; Celtic FC; Celtic Glasgow
Rangers; Rangers FC; Glasgow Rangers
Hearts; Heart of Midlothian
Shamrock Rovers; Shamrock Rovers Dublin
Nacional; Club Nacional; Nacional Montevideo
River Plate; CA River Plate; River Plate Buenos Aires
Racing Club; Racing Avellaneda; Racing Club Avellaneda
Independiente; CA Independiente; Independiente Avellaneda
San Lorenzo; San Lorenzo de Almagro; CA San Lorenzo
Flamengo; CR Flamengo; Flamengo RJ
Vasco da Gama; Vasco; CR Vasco da Gama
Botafogo; Botafogo FR; Botafogo RJ
Santos; Santos FC
Palmeiras; SE Palmeiras
Corinthians; SC Corinthians; Corinthians Paulista
Internacional; SC Internacional; Internacional Porto Alegre
Cruzeiro; Cruzeiro EC
Bahia; EC Bahia
Fortaleza; Fortaleza EC
Sport Recife; Sport Club do Recife; Sport
LDU Quito; LDU de Quito; Liga de Quito
Emelec; CS Emelec
Sporting Cristal; Club Sporting Cristal
Alianza Lima; Club Alianza Lima
Colo Colo; Colo-Colo; CSD Colo-Colo
Olimpia; Club Olimpia; Olimpia Asunción
Cerro Porteño; Cerro Porteno; Club Cerro Porteño
Al Ahly; Al Ahly Cairo; Al-Ahly
Wydad Casablanca; Wydad AC; Wydad
Melbourne Victory; Melbourne Victory FC
Sydney FC; Sydney
"""

CRICKET = """
Chennai Super Kings; CSK
Mumbai Indians; MI; Mumbai Indians IPL
Kolkata Knight Riders; KKR; Kolkata
Royal Challengers Bengaluru; RCB; Royal Challengers Bangalore; R. Challengers Bengaluru
Sunrisers Hyderabad; SRH; Hyderabad Sunrisers
Rajasthan Royals; RR
Delhi Capitals; DC; Delhi Daredevils
Punjab Kings; PBKS; Kings XI Punjab
Gujarat Titans; GT
Lucknow Super Giants; LSG
Perth Scorchers; PS; P. Scorchers
Sydney Sixers; SYS; Syd Sixers
Sydney Thunder; SYT; Syd Thunder
Melbourne Stars; MLS; Melb Stars
Melbourne Renegades; MLR; Melb Renegades
Adelaide Strikers; ADS; Adel Strikers
Brisbane Heat; BRH; Bris Heat
Hobart Hurricanes; HBH; Hob Hurricanes
Karachi Kings; KK
Lahore Qalandars; LQ
Islamabad United; IU; Islamabad Utd
Peshawar Zalmi; PZ
Quetta Gladiators; QG
Multan Sultans; MS
Trinbago Knight Riders; TKR
Guyana Amazon Warriors; GAW; Guyana Amazon W.
Barbados Royals; BR
St Lucia Kings; SLK; Saint Lucia Kings
St Kitts and Nevis Patriots; SKNP; St Kitts & Nevis Patriots
Oval Invincibles; OVI
Trent Rockets; TRT
London Spirit; LNS
Southern Brave; SOB
Joburg Super Kings; JSK
Paarl Royals; PR
MI Cape Town; MICT; Mumbai Indians Cape Town
Durban's Super Giants; DSG; Durbans Super Giants
Pretoria Capitals; PC
Sunrisers Eastern Cape; SEC
Desert Vipers; DV
Gulf Giants; GG
MI Emirates; MIE
Texas Super Kings; TSK
Seattle Orcas; SOR
Washington Freedom; WAF
San Francisco Unicorns; SFU; S.F. Unicorns
MI New York; MINY
Los Angeles Knight Riders; LAKR; LA Knight Riders
Rangpur Riders; RAN
Comilla Victorians; COV
Fortune Barishal; FBA
Dhaka Capitals; DHC
Jaffna Kings; JK
Galle Marvels; GM
Kandy Falcons; KF
Colombo Strikers; CS
Somerset; Somerset CCC
Surrey; Surrey CCC
Yorkshire; Yorkshire CCC; Yorkshire Vikings
Lancashire; Lancashire CCC; Lancashire Lightning
Nottinghamshire; Notts; Nottinghamshire CCC
Northamptonshire; Northants; Northamptonshire CCC
Hampshire; Hampshire CCC; Hampshire Hawks
New South Wales; NSW
South Australia; S. Australia
Western Australia; W. Australia
Tasmania; Tasmania Tigers
Queensland; Queensland Bulls
Central Districts; C. Districts
Northern Districts; N. Districts
Karnataka; Karnataka CA
Tamil Nadu; Tamilnadu
Jammu & Kashmir; Jammu and Kashmir; J&K
West Indies; Windies; WI
Sri Lanka; SL
New Zealand; NZ
South Africa; SA
England A; England Lions
Pakistan A; Pakistan Shaheens
"""

# Two teams each that are taken for each other. The opponent is the same.
RIVAL_NATIONS = """
Guinea; Equatorial Guinea
Guinea; Guinea-Bissau
Guinea; Papua New Guinea
Congo; DR Congo
Ireland; Northern Ireland
Republic of Ireland; Northern Ireland
South Korea; North Korea
Niger; Nigeria
Dominica; Dominican Republic
Sudan; South Sudan
Samoa; American Samoa
Austria; Australia
Slovakia; Slovenia
Mauritania; Mauritius
Iran; Iraq
Gambia; Zambia
Mali; Malawi
China; Chinese Taipei
Virgin Islands; British Virgin Islands
"""

RIVAL_CLUBS = """
Inter Milan; AC Milan
Internazionale; Milan
Inter Milan; Inter Miami
Internacional; Inter Milan
Manchester United; Manchester City
Man Utd; Man City
Sheffield United; Sheffield Wednesday
Dundee; Dundee United
Bristol City; Bristol Rovers
Notts County; Nottingham Forest
Real Madrid; Atlético Madrid
Real Madrid; Rayo Vallecano
Real Sociedad; Real Valladolid
Athletic Bilbao; Atlético Madrid
Barcelona; Barcelona SC
FC Barcelona; Espanyol
Barcelona; Barcelona Atlètic
Sporting CP; Sporting Gijón
Sporting Braga; Sporting CP
Botafogo; Botafogo-PB
Botafogo-SP; Botafogo-PB
Botafogo; Botafogo-SP
América Mineiro; América-RN
América; América de Cali
Atlético Mineiro; Athletico Paranaense
Atlético-GO; Atlético-MG
Nacional; Nacional Potosí
Nacional; Atlético Nacional
Nacional; Nacional da Madeira
EC Vitória; Vitória SC
River Plate; River Plate Montevideo
Racing Club; Racing Santander
Racing Montevideo; Racing Club
Independiente; Independiente del Valle
Independiente Medellín; Independiente Santa Fe
Independiente Rivadavia; Independiente
Estudiantes; Estudiantes de Mérida
Gimnasia La Plata; Gimnasia Mendoza
Universidad Católica; Universidad de Chile
Universidad Católica; Universidad Católica del Ecuador
Everton; Everton de Viña del Mar
Liverpool; Liverpool Montevideo
Arsenal; Arsenal de Sarandí
Santos; Santos Laguna
Fluminense; Fluminense de Feira
Guaraní; Guarani Campinas
Olimpia; Olimpija Ljubljana
Rangers; Queens Park Rangers
Rangers; Berwick Rangers
Celtic; Cork City
Spartak Moscow; Spartak Trnava
Spartak Moscow; Spartak Myjava
Dynamo Kyiv; Dynamo Moscow
Dinamo Minsk; Dinamo Moscow
Dinamo Zagreb; Dinamo București
CSKA Moscow; CSKA Sofia
Lokomotiv Moscow; Lokomotiv Plovdiv
Lokomotiv Sofia; Lokomotiv Moscow
Shakhtar Donetsk; Shakhter Karagandy
Shakhtyor Soligorsk; Shakhtar Donetsk
Torpedo Moscow; Torpedo Kutaisi
Arsenal Tula; Arsenal
Zenit Saint Petersburg; Zenit Penza
Slavia Prague; Sparta Prague
Slavia Sofia; Slavia Prague
Partizan; Partizani Tirana
Rapid Wien; Austria Wien
Rapid București; Rapid Wien
RB Leipzig; Lokomotive Leipzig
Chemie Leipzig; RB Leipzig
Red Bull Salzburg; Austria Salzburg
New York Red Bulls; New York City
Los Angeles FC; LA Galaxy
Borussia Dortmund; Borussia Mönchengladbach
Eintracht Frankfurt; FSV Frankfurt
Eintracht Frankfurt; Eintracht Braunschweig
Bayern Munich; 1860 Munich
Hertha Berlin; Union Berlin
Union Berlin; Union Saint-Gilloise
FC Köln; Viktoria Köln
Fortuna Düsseldorf; Fortuna Sittard
Fortuna Köln; 1. FC Köln
Paris Saint-Germain; Paris FC
Olympique Lyonnais; Olympique de Marseille
Racing Strasbourg; RC Lens
Standard Liège; RFC Liège
Club Brugge; Cercle Brugge
Al Ahly; Al-Ahli Tripoli
Al-Ittihad; Al-Ittihad Alexandria
Al-Nassr; Al-Nasr Dubai
Al-Hilal; Al-Hilal Omdurman
Al-Shabab; Al-Shahania
Hapoel Tel Aviv; Maccabi Tel Aviv
Maccabi Haifa; Hapoel Haifa
Santa Clara; Santa Cruz
San Lorenzo; San Luis
Deportivo Cali; Deportes Tolima
Deportivo Cali; Deportivo Pereira
América de Cali; Deportivo Cali
Cerro Porteño; Cerro
Cerro Largo; Cerro
Unión de Santa Fe; Independiente Santa Fe
Central Córdoba; Córdoba
Rosario Central; Central Córdoba
Oxford United; Oxford City
Cambridge United; Cambridge City
Bradford City; Bradford Park Avenue
Hamilton Academical; Hamilton Forge
Sydney FC; Western Sydney Wanderers
Perth Glory; Perth RedStar
Wellington Phoenix; Auckland FC
Kansas City; Sporting Kansas City
San Jose Earthquakes; Deportivo Saprissa San José
"""

RIVALS_IN_CRICKET = """
Mumbai; Mumbai Indians
Delhi; Delhi Capitals
Mumbai Indians; MI New York
MI Cape Town; MI Emirates
MI New York; MI Cape Town
Chennai Super Kings; Joburg Super Kings
Texas Super Kings; Chennai Super Kings
Kolkata Knight Riders; Trinbago Knight Riders
Los Angeles Knight Riders; Abu Dhabi Knight Riders
Rajasthan Royals; Paarl Royals
Barbados Royals; Rajasthan Royals
Delhi Capitals; Pretoria Capitals
Dubai Capitals; Delhi Capitals
Sunrisers Hyderabad; Sunrisers Eastern Cape
Lucknow Super Giants; Durban's Super Giants
Melbourne Stars; Melbourne Renegades
Sydney Sixers; Sydney Thunder
Rangpur Riders; Rajasthan Royals
Multan Sultans; Melbourne Stars
South Australia; South Africa
South Australia; Western Australia
Northern Districts; Central Districts
Birmingham Bears; Birmingham Phoenix
Jaffna Kings; Punjab Kings
St Lucia Kings; Karachi Kings
West Indies; West Indies A
India A; India B
India C; India D
South Zone; North Zone
East Zone; West Zone
Central Zone; North East Zone
"""

WOMEN_WORDS = ("Women", "W", "(W)", "Women's")
YOUTH_WORDS = ("U19", "U-19", "Under-19", "Under 19", "Under-19s")
SECOND_WORDS = (" II", " B", " Reserves")
